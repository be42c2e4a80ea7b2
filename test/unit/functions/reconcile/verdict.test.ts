import { describe, expect, test } from 'vitest';
import * as v from 'valibot';
import { defineKind } from '#core/kind.ts';
import { TerminalError } from '#core/reconcile/outcome.ts';
import type { Controller } from '#core/reconcile/controller.ts';
import { Findings } from '#functions/reconcile/findings.ts';
import { failed, nextLook, reconciled } from '#functions/reconcile/verdict.ts';

const RESYNC_MS = 100_000;
const kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: v.object({}),
  controllers: [{ name: 'smith', resyncMs: RESYNC_MS, reconcile: async () => undefined }],
});
const controller = kind.controllers[0] as Controller;
const base = { attempts: 0, isDeleting: false, hide: (text: string) => text };

describe('a failure', () => {
  test('is told in 1,024 characters at most, without what is secret', () => {
    const findings = new Findings(1, []);
    const error = new Error(`login with hunter2 failed ${'x'.repeat(5_000)}`);
    failed(controller, findings, { ...base, error, hide: (text) => text.replaceAll('hunter2', '***') });
    const { message = '' } = findings.conditions.get('Ready') ?? {};
    expect(message.length).toBe(1_024);
    expect(message).toMatch(/^login with \*\*\* failed/);
    expect(findings.events).toEqual([{ type: 'Warning', reason: 'ReconcileFailed', message }]);
  });

  test.each([
    ['Busy', 'Busy'],
    ['not a reason', 'InvalidSpec'],
    ['', 'InvalidSpec'],
  ])('that is terminal, with the reason %j, is told as %s', (given, reason) => {
    const findings = new Findings(1, []);
    const verdict = failed(controller, findings, { ...base, error: new TerminalError(given, 'never') });
    expect(verdict).toMatchObject({ result: 'terminal', isTerminal: true, next: { itemClass: 3 } });
    expect(findings.conditions.get('Ready')?.reason).toBe(reason);
  });

  test('of a deletion is never terminal: the object has to go some day', () => {
    const error = new TerminalError('Busy', 'never');
    const verdict = failed(controller, new Findings(1, []), { ...base, error, isDeleting: true });
    expect(verdict).toMatchObject({ result: 'error', isTerminal: false, blocked: { reason: 'FinalizeFailed' } });
  });

  test.each([['text'], [undefined], [null], [{ code: 5 }], [Symbol('x')]])(
    'that throws %s is one all the same',
    (error) => {
      expect(failed(controller, new Findings(1, []), { ...base, error }).result).toBe('error');
    },
  );
});

describe('a good pass', () => {
  test('leaves a summary that the function itself set', () => {
    const findings = new Findings(1, []);
    findings.condition('Ready', 'False', 'Warming', 'soon');
    reconciled(controller, findings, {});
    expect(findings.conditions.get('Ready')).toMatchObject({ status: 'False', reason: 'Warming' });
  });

  test('is not ready in spite of what it could not see, whatever it says; it may say that it is not', () => {
    const findings = new Findings(1, []);
    findings.observed({ class: 'box', id: '1', state: 'unknown', message: 'fog' });
    expect(() => reconciled(controller, findings, {})).toThrow('box 1 cannot be read: fog');
    findings.condition('Ready', 'True', 'NoMatter', '');
    expect(() => reconciled(controller, findings, {})).toThrow('box 1 cannot be read: fog');
    findings.condition('Ready', 'False', 'Foggy', '');
    expect(reconciled(controller, findings, {}).result).toBe('done');
  });

  test('is looked at again at its resync, or sooner when it asks for that', () => {
    for (let n = 0; n < 100; n++) {
      const { itemClass, afterMs } = nextLook(controller);
      expect(itemClass).toBe(3);
      expect(Math.abs(afterMs - RESYNC_MS)).toBeLessThanOrEqual(RESYNC_MS * 0.2);
    }
    expect(nextLook(controller, 500)).toEqual({ itemClass: 2, afterMs: 500 });
    expect(nextLook(controller, RESYNC_MS * 5).itemClass).toBe(3);
  });
});
