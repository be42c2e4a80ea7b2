import { expect, test } from 'vitest';

import type { JsonObject } from '#core/json.ts';
import { checkObservedGeneration } from '#core/observed-generation.ts';

test.for<[JsonObject, JsonObject]>([
  [{}, {}],
  [{}, { observedGeneration: 3 }],
  [{ observedGeneration: 2 }, { observedGeneration: 2 }],
  [{ observedGeneration: 'raw' }, { observedGeneration: 0 }],
])('at generation 3, a status may go from %j to %j', ([before, after]) => {
  expect(() => checkObservedGeneration('Widget "blue"', before, after, 3)).not.toThrow();
});

test.for<[JsonObject, JsonObject, number, string]>([
  [{}, { observedGeneration: 4 }, 422, 'is 4, above metadata.generation, which is 3'],
  [{}, { observedGeneration: '3' }, 422, 'must be an integer'],
  [{}, { observedGeneration: -1 }, 422, 'must be an integer'],
  [{ observedGeneration: 2 }, { observedGeneration: 1 }, 409, 'cannot go back from 2 to 1'],
  [{ observedGeneration: 2 }, {}, 409, 'cannot go back from 2 to 0'],
])('at generation 3, a status cannot go from %j to %j', ([before, after, code, words]) => {
  expect(() => checkObservedGeneration('Widget "blue"', before, after, 3)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(words) }),
  );
});
