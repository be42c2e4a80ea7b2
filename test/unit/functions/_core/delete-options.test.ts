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
  expect(readDeleteOptions(body)).toEqual({ preconditions: {}, isDryRun: false, propagation: 'Background' });
  expect(readDeleteOptions({ dryRun: ['All'] }).isDryRun).toBe(true);
  expect(readDeleteOptions({ preconditions: { uid: 'u-1', resourceVersion: '7' } }).preconditions).toEqual({
    uid: 'u-1',
    resourceVersion: '7',
  });
  expect(readDeleteOptions({ preconditions: { uid: null } }).preconditions).toEqual({});
});

test.for<[JsonObject, string | undefined]>([
  [{}, undefined],
  [{ propagationPolicy: null, orphanDependents: null }, undefined],
  [{ propagationPolicy: 'Foreground' }, 'Foreground'],
  [{ propagationPolicy: 'Orphan' }, 'Orphan'],
  [{ orphanDependents: true }, 'Orphan'],
  [{ orphanDependents: false }, 'Background'],
])('%j asks for the policy %s', ([body, policy]) => {
  expect(readDeleteOptions(body).propagation).toBe(policy);
});

test.for<[JsonObject, number, string]>([
  [{ orphanDependents: 'yes' }, 422, 'orphanDependents: must be true or false'],
  [{ orphanDependents: false, propagationPolicy: 'Orphan' }, 422, 'orphanDependents: cannot be set beside'],
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
