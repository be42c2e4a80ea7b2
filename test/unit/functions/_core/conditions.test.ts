import { expect, test } from 'vitest';

import { settleConditions } from '#core/conditions.ts';
import type { JsonObject } from '#core/json.ts';

const EARLIER = '2026-01-01T00:00:00Z';
const LATER = '2026-02-02T00:00:00Z';

function settled(before: readonly JsonObject[], after: readonly JsonObject[]): unknown {
  return settleConditions({ conditions: before }, { conditions: after, other: 1 });
}

test('conditions are in the order of their types', () => {
  const [a, b, z] = ['B', 'a', 'Z'].map((type) => ({ type, status: 'True' }));
  expect(settled([], [b!, z!, a!])).toEqual({ conditions: [a, z, b], other: 1 });
});

test('the time of a transition stays while the status stays, whatever is sent', () => {
  const before = { type: 'Ready', status: 'True', reason: 'Old', lastTransitionTime: EARLIER };
  const same = { type: 'Ready', status: 'True', reason: 'New', lastTransitionTime: LATER };
  expect(settled([before], [same])).toMatchObject({ conditions: [{ reason: 'New', lastTransitionTime: EARLIER }] });
  expect(settled([before], [{ type: 'Ready', status: 'True' }])).toMatchObject({
    conditions: [{ lastTransitionTime: EARLIER }],
  });
});

test('the time of a transition is the reported one where the status changed, or is new', () => {
  const before = { type: 'Ready', status: 'True', lastTransitionTime: EARLIER };
  const changed = { type: 'Ready', status: 'False', lastTransitionTime: LATER };
  const fresh = { type: 'Synced', status: 'True', lastTransitionTime: LATER };
  expect(settled([before], [changed, fresh])).toEqual({ conditions: [changed, fresh], other: 1 });
});

test.for<[string, JsonObject]>([
  ['no conditions', { a: 1 }],
  ['conditions that are no list', { conditions: { type: 'A' } }],
  ['conditions without a type', { conditions: [{ type: 'B' }, { status: 'True' }] }],
  ['a type twice', { conditions: [{ type: 'B' }, { type: 'A' }, { type: 'B' }] }],
])('%s stay as they are', ([, status]) => {
  expect(settleConditions({ conditions: [{ type: 'B', lastTransitionTime: EARLIER }] }, status)).toBe(status);
});
