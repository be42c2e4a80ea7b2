import { describe, expect, test } from 'vitest';
import {
  type Change,
  type ChangeType,
  checkOrdering,
  type ReceivedEvent,
  type Run,
} from '#test/property/ordering-checker.ts';

/** Two objects of acme, one of globex. Deletions have no version of their own in the history. */
const HISTORY: readonly Change[] = [
  change('acme', 'a', 'ADDED', 1n, [0, 1]),
  change('acme', 'b', 'ADDED', 2n, [1, 2]),
  change('acme', 'a', 'MODIFIED', 4n, [2, 4]),
  change('globex', 'c', 'ADDED', 3n, [2, 3]),
  change('acme', 'a', 'DELETED', undefined, [4, 5]),
];

const ACME: readonly ReceivedEvent[] = [
  event('acme', 1n, 'a', 'ADDED', 1n),
  event('acme', 2n, 'b', 'ADDED', 2n),
  event('acme', 3n, 'a', 'MODIFIED', 4n),
  event('acme', 4n, 'a', 'DELETED', 5n),
];
const GLOBEX: readonly ReceivedEvent[] = [event('globex', 1n, 'c', 'ADDED', 3n)];

function change(
  tenant: string,
  uid: string,
  type: ChangeType,
  resourceVersion: bigint | undefined,
  [begun, acknowledged]: readonly [number, number],
): Change {
  return { tenant, uid, type, ...(resourceVersion && { resourceVersion }), transaction: { begun, acknowledged } };
}

function event(tenant: string, seq: bigint, uid: string, type: ChangeType, resourceVersion: bigint): ReceivedEvent {
  return { tenant, seq, id: `${tenant}/${uid}/${resourceVersion}`, uid, type, resourceVersion };
}

function run(events: readonly ReceivedEvent[], options: Partial<Run> = {}): Run {
  return { name: 'w', tenants: '*', start: 'origin', events, ...options };
}

function rulesBroken(...runs: readonly Run[]): readonly string[] {
  return [...new Set(checkOrdering(HISTORY, runs).map((violation) => violation.rule))].toSorted();
}

/** Densely numbered in this order, whatever it is. */
function numbered(...events: readonly (ReceivedEvent | undefined)[]): readonly ReceivedEvent[] {
  return events.filter((one) => one !== undefined).map((one, index) => ({ ...one, seq: BigInt(index + 1) }));
}

describe('checkOrdering() accepts', () => {
  test('every change once, in order, however the streams are interleaved', () => {
    expect(rulesBroken(run([...ACME, ...GLOBEX]), run([...GLOBEX, ...ACME]))).toEqual([]);
  });

  test('another order of changes of which none caused the other', () => {
    const history = [change('acme', 'a', 'ADDED', 1n, [0, 2]), change('acme', 'b', 'ADDED', 2n, [0, 1])];
    for (const events of [numbered(ACME[0], ACME[1]), numbered(ACME[1], ACME[0])]) {
      expect(checkOrdering(history, [run(events)])).toEqual([]);
    }
  });

  test('a watcher of one tenant that has only its events', () => {
    expect(rulesBroken(run(ACME, { tenants: ['acme'] }))).toEqual([]);
  });

  test('a watcher that left early', () => {
    expect(rulesBroken(run(ACME.slice(0, 2), { isComplete: false }))).toEqual([]);
  });

  test('a watch that goes on behind a list, wherever that was', () => {
    const lists: readonly (readonly [number, Record<string, bigint>])[] = [
      [0, {}],
      [1, { a: 1n }],
      [2, { a: 1n, b: 2n }],
      [3, { a: 4n, b: 2n }],
      [4, { b: 2n }],
    ];
    for (const [seq, listed] of lists) {
      const start = new Map(Object.entries(listed));
      expect(rulesBroken(run(ACME.slice(seq), { tenants: ['acme'], start }))).toEqual([]);
    }
  });
});

describe('checkOrdering() finds', () => {
  const acme = { tenants: ['acme'] };

  test('a change that never came, in the middle and at the end', () => {
    expect(rulesBroken(run(numbered(ACME[0], ACME[1], ACME[3]), acme))).toEqual(['lost']);
    expect(rulesBroken(run(ACME.slice(0, 3), acme))).toEqual(['lost']);
    expect(rulesBroken(run(ACME))).toEqual(['lost']);
  });

  test('a number that was left out', () => {
    expect(
      rulesBroken(
        run(
          [ACME[0], ...ACME.slice(2)].filter((one) => one !== undefined),
          acme,
        ),
      ),
    ).toEqual(['gap', 'lost']);
    const late = ACME.map((one) => ({ ...one, seq: one.seq + 1n }));
    expect(rulesBroken(run(late, acme))).toEqual(['gap']);
  });

  test('an event that came twice, under its number or a new one', () => {
    const again = [...ACME.slice(0, 3), ...ACME.slice(2)];
    expect(rulesBroken(run(again, acme))).toEqual(['order', 'twice']);
    expect(rulesBroken(run(numbered(...again), acme))).toEqual(['order', 'twice']);
  });

  test('an older version of an object behind a newer one', () => {
    const stepBack = numbered(ACME[2], ACME[1], ACME[0], ACME[3]);
    expect(rulesBroken(run(stepBack, acme))).toEqual(['causality', 'lost', 'order']);
  });

  test('a deletion whose version is not the last of its object', () => {
    const early = numbered(...ACME.slice(0, 3), event('acme', 4n, 'a', 'DELETED', 3n));
    expect(rulesBroken(run(early, acme))).toEqual(['order']);
  });

  test('an effect before its cause, in objects that have nothing else in common', () => {
    expect(rulesBroken(run(numbered(ACME[1], ACME[0], ACME[2], ACME[3]), acme))).toEqual(['causality']);
  });

  test('a change that was rolled back, and an object that never was', () => {
    const aborted = event('acme', 5n, 'b', 'MODIFIED', 9n);
    expect(rulesBroken(run([...ACME, aborted], acme))).toEqual(['unknown']);
    expect(rulesBroken(run([...ACME, event('acme', 5n, 'x', 'ADDED', 9n)], acme))).toEqual(['unknown']);
  });

  test('a change that came as another type', () => {
    const wrong = ACME.map((one) => (one.type === 'MODIFIED' ? { ...one, type: 'ADDED' as const } : one));
    expect(rulesBroken(run(wrong, acme))).toEqual(['lost', 'unknown']);
  });

  test('events of a tenant that the watcher does not watch', () => {
    expect(rulesBroken(run([...ACME, ...GLOBEX], acme))).toEqual(['unknown']);
  });

  test('two watchers who were told different events under one number', () => {
    const other = numbered(ACME[1], ACME[0], ACME[2], ACME[3]);
    expect(rulesBroken(run(ACME, acme), run(other, acme))).toContain('disagreement');
  });

  test('a watch that leaves out or repeats what was around its list', () => {
    const start = new Map([
      ['a', 1n],
      ['b', 2n],
    ]);
    expect(rulesBroken(run(ACME.slice(3), { ...acme, start }))).toEqual(['lost']);
    expect(rulesBroken(run(ACME.slice(1), { ...acme, start }))).toEqual(['order']);
  });

  test('a list of what never was at one moment', () => {
    expect(rulesBroken(run([], { ...acme, start: new Map([['a', 7n]]) }))).toContain('seam');
    expect(rulesBroken(run([], { ...acme, start: new Map() }))).toEqual(['lost']);
    // Without b, and with a later change of a: b came between.
    expect(rulesBroken(run(ACME.slice(3), { ...acme, start: new Map([['a', 4n]]) }))).toEqual(['lost']);
  });
});
