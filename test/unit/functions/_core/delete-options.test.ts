import { expect, test } from 'vitest';

import { readDeleteOptions } from '#core/delete-options.ts';
import type { JsonObject } from '#core/json.ts';

test('what Kubernetes clients send with a deletion is accepted', () => {
  const body = {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    propagationPolicy: 'Background',
    gracePeriodSeconds: 0,
    dryRun: [],
  };
  expect(readDeleteOptions(body)).toEqual({ preconditions: {}, isDryRun: false });
  expect(readDeleteOptions({ dryRun: ['All'] }).isDryRun).toBe(true);
  expect(readDeleteOptions({ preconditions: { uid: 'u-1', resourceVersion: '7' } }).preconditions).toEqual({
    uid: 'u-1',
    resourceVersion: '7',
  });
  expect(readDeleteOptions({ preconditions: { uid: null } }).preconditions).toEqual({});
});

test.for<[JsonObject, number, string]>([
  [{ precondition: { uid: 'u' } }, 422, 'precondition: unknown field'],
  [{ preconditions: { UID: 'u' } }, 422, 'preconditions.UID: unknown field'],
  [{ preconditions: { resourceVersion: 'new' } }, 422, 'preconditions.resourceVersion'],
  [{ preconditions: [] }, 422, 'preconditions: must be an object'],
  [{ propagationPolicy: 'Sideways' }, 422, 'propagationPolicy: must be one of'],
  [{ kind: 'Widget' }, 422, 'kind: must be "DeleteOptions"'],
  [{ dryRun: ['Some'] }, 400, 'dryRun must be ["All"]'],
  [{ dryRun: 'All' }, 400, 'dryRun must be ["All"]'],
])('%j is refused: a condition that is not understood must not be none', ([body, code, words]) => {
  expect(() => readDeleteOptions(body)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(words) }),
  );
});
