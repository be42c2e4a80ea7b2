import { describe, expect, test } from 'vitest';
import { Findings, resourcesOf } from '#functions/reconcile/findings.ts';

const shown = (text: string): string => text;

const ID = 'example.dev/smith';
const READY = { type: 'Ready', status: 'True', reason: 'Done', message: '', observedGeneration: 3 } as const;

function said(): Findings {
  const findings = new Findings(3, []);
  findings.condition('Ready', 'True', 'Done', '');
  return findings;
}

describe('what a pass found', () => {
  const status = { observedGeneration: 3, conditions: [{ ...READY, lastTransitionTime: 'then' }], size: 5 };

  test('is not told again when the status says all of it', () => {
    const findings = said();
    findings.field('size', 5);
    findings.removeCondition('Paused');
    expect(findings.report(status, ID, shown)).toBeUndefined();
  });

  test.each<[string, (findings: Findings) => void]>([
    ['another field', (findings) => findings.field('size', 6)],
    ['a field that goes', (findings) => findings.field('size', undefined)],
    ['another reason', (findings) => findings.condition('Ready', 'True', 'Repaired', '')],
    ['a condition that goes', (findings) => findings.removeCondition('Ready')],
    ['a thing outside', (findings) => findings.observed({ class: 'box', id: '1', state: 'present' })],
  ])('is told when it has %s', (_what, change) => {
    const findings = said();
    change(findings);
    expect(findings.report(status, ID, shown)).toBeDefined();
  });

  test('is told when only the generation is another', () => {
    expect(said().report({ ...status, observedGeneration: 2 }, ID, shown)).toBeDefined();
  });

  test('a condition that was set and removed is removed, and the other way round', () => {
    const findings = new Findings(3, []);
    findings.condition('Ready', 'True', 'Done', '');
    findings.removeCondition('Ready');
    expect(findings.report(status, ID, shown)).toMatchObject({ conditions: [], removedConditions: ['Ready'] });
    findings.condition('Ready', 'True', 'Other', '');
    expect(findings.report(status, ID, shown)).toMatchObject({
      conditions: [{ reason: 'Other' }],
      removedConditions: [],
    });
  });
});

describe('what may be left outside', () => {
  const before = [{ class: 'box', id: '1', state: 'present' } as const];

  test('is everything that was ever seen and not seen to be absent in this pass', () => {
    const findings = new Findings(3, before);
    expect(findings.left).toEqual(before);
    findings.observed({ class: 'box', id: '2', state: 'unknown', message: 'fog' });
    findings.observed({ class: 'box', id: '3', state: 'absent' });
    expect(findings.left.map(({ id }) => id)).toEqual(['1', '2']);
    findings.observed({ class: 'box', id: '1', state: 'absent' });
    expect(findings.left.map(({ id }) => id)).toEqual(['2']);
  });

  test('is also what was only noted as absent by an earlier pass: it may have come since', () => {
    expect(new Findings(3, [{ class: 'box', id: '1', state: 'absent' }]).left.length).toBe(1);
  });

  test('is not what was released', () => {
    const findings = new Findings(3, before);
    findings.released({ class: 'box', id: '1' });
    expect(findings.left).toEqual([]);
    expect(findings.report({}, ID, shown)?.resources).toEqual([]);
  });

  test('is told apart by class', () => {
    const findings = new Findings(3, before);
    findings.observed({ class: 'bag', id: '1', state: 'absent' });
    expect(findings.left).toEqual(before);
  });
});

test('of the resources in a status each controller has its own, and nonsense is none of them', () => {
  const mine = { controller: ID, class: 'box', id: '1', state: 'present' };
  const resources = [mine, { ...mine, controller: 'example.dev/other' }, { controller: ID }];
  expect(resourcesOf({ resources }, ID)).toEqual([{ class: 'box', id: '1', state: 'present' }]);
  expect(resourcesOf({ resources: 'none' }, ID)).toEqual([]);
  expect(resourcesOf({}, ID)).toEqual([]);
});
