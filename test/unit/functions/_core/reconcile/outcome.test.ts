import { describe, expect, test } from 'vitest';
import { readFinalizeResult, readReconcileResult } from '#core/reconcile/outcome.ts';

const blocked = { reason: 'Busy', message: 'somebody is in there' };

describe('what reconcile() returns', () => {
  test.each([
    [undefined, {}],
    [{}, {}],
    [{ requeueAfterMs: 0 }, { requeueAfterMs: 0 }],
    [
      { notReady: blocked, requeueAfterMs: 5 },
      { notReady: blocked, requeueAfterMs: 5 },
    ],
  ])('%j is taken', (returned, result) => {
    expect(readReconcileResult(returned)).toEqual(result);
  });

  test.each([
    [null, 'reconcile() must return nothing'],
    ['done', 'reconcile() must return nothing'],
    [[], 'reconcile() must return nothing'],
    [{ requeueAfter: 5 }, 'requeueAfter'],
    [{ requeueAfterMs: '5' }, 'requeueAfterMs'],
    [{ requeueAfterMs: -1 }, 'requeueAfterMs'],
    [{ requeueAfterMs: Infinity }, 'requeueAfterMs'],
    [{ notReady: 'not yet' }, 'notReady'],
    [{ notReady: { reason: 'Two words', message: '' } }, 'notReady.reason'],
    [{ notReady: { reason: 'Busy' } }, 'notReady.message'],
  ])('%j is refused, by the field', (returned, words) => {
    expect(() => readReconcileResult(returned)).toThrow(TypeError);
    expect(() => readReconcileResult(returned)).toThrow(words);
  });
});

describe('what finalize() returns', () => {
  test.each([
    [{ finalized: true }],
    [{ finalized: false, blocked }],
    [{ finalized: false, blocked, requeueAfterMs: 500 }],
  ])('%j is taken', (returned) => {
    expect(readFinalizeResult(returned)).toEqual(returned);
  });

  test.each([
    [undefined],
    [true],
    [{}],
    [{ finalized: 'yes' }],
    [{ finalized: false }],
    [{ finalized: true, requeueAfterMs: 5 }],
  ])('%j is no proof of anything', (returned) => {
    expect(() => readFinalizeResult(returned)).toThrow('finalize() must return');
  });
});
