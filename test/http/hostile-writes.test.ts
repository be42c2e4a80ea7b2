/** Writes as nobody sane sends them: whatever comes, the answer is an object or a `Status`, and no fault of the server's. */

import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';

import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { useWorld } from '#test/http/resource-api/world.ts';

const REQUESTS = 1500;
const CODES = [200, 201, 202, 400, 404, 409, 413, 415, 422];

let starting: Promise<ApiServer> | undefined;
const world = useWorld(() => (starting ??= startApiServer()));
afterAll(async () => (await starting)?.stop());

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('a', 'w1', 'example.dev/a', '1', ''));
const json = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text, fc.constantFrom(null, 1e21, -0, 2 ** 53, [], {}));
const someOf = (keys: readonly string[]): fc.Arbitrary<object> =>
  fc.dictionary(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...keys) }, { weight: 1, arbitrary: text }), json);

const metadata = someOf([
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'uid',
  'resourceVersion',
  'deletionTimestamp',
  'generateName',
]);
const condition = fc.record({ type: json, status: json, lastTransitionTime: json }, { requiredKeys: [] });
const status = fc.record(
  { conditions: fc.oneof(json, fc.array(condition)), observedGeneration: json },
  { requiredKeys: [] },
);
const object = fc.record(
  {
    metadata: fc.oneof({ weight: 4, arbitrary: metadata }, { weight: 1, arbitrary: json }),
    spec: fc.oneof(json, someOf(['size', 'tier', 'password', 'users', '__proto__'])),
    status: fc.oneof(json, status),
  },
  { requiredKeys: [] },
);
const pointer = fc.oneof(
  text,
  fc
    .array(fc.constantFrom('metadata', 'finalizers', 'spec', 'size', 'users', 'status', '0', '-', '__proto__'), {
      maxLength: 5,
    })
    .map((steps) => steps.map((step) => `/${step}`).join('')),
);
const operation = fc.record(
  {
    op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'x'),
    path: pointer,
    from: pointer,
    value: json,
  },
  { requiredKeys: ['op'] },
);
const request = fc.record({
  method: fc.constantFrom('POST', 'PUT', 'PATCH', 'PATCH', 'DELETE'),
  type: fc.constantFrom('application/json', 'application/merge-patch+json', 'application/json-patch+json'),
  body: fc.oneof(object, fc.array(operation, { maxLength: 6 }), json),
  plural: fc.constantFrom('widgets', 'vaults'),
  name: fc.constantFrom('w1', 'w2', 'w3'),
  suffix: fc.constantFrom('', '', '/status'),
  query: fc.constantFrom(
    '',
    '',
    '?dryRun=All',
    '?fieldValidation=Strict',
    '?fieldValidation=Ignore',
    '?dryRun=All&fieldValidation=Warn',
    '?dryRun=x',
  ),
  ifMatch: fc.option(fc.constantFrom('*', '"1"', '"99999999999999999999"', 'x'), { nil: undefined, freq: 8 }),
});

test('anything that is sent as a write is answered, and nothing breaks', async () => {
  const codes = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(request, async ({ method, type, body, plural, name, suffix, query, ifMatch }) => {
      const version = plural === 'vaults' ? 'v1beta1' : 'v1';
      const collection = `/apis/example.dev/${version}/namespaces/${world.tenant}/${plural}`;
      const path = method === 'POST' ? collection : `${collection}/${name}${method === 'DELETE' ? '' : suffix}`;
      const sent = method === 'POST' && isPlainObject(body) ? named(body, name) : body;
      const matching = method === 'PATCH' ? type : 'application/json';
      const headers = { 'Content-Type': matching, ...(ifMatch !== undefined && { 'If-Match': ifMatch }) };
      const answer = await world.admin.send(method, path + query, JSON.stringify(sent), headers);
      codes.set(answer.status, (codes.get(answer.status) ?? 0) + 1);
      expect(CODES, answer.text).toContain(answer.status);
      expect(answer.body.kind).toBe(answer.status >= 400 ? 'Status' : { widgets: 'Widget', vaults: 'Vault' }[plural]);
    }),
    { numRuns: REQUESTS },
  );
  // It tells nothing unless some of it was written, and some refused by each rule.
  expect([...codes.keys()].toSorted((a, b) => a - b)).toEqual(expect.arrayContaining([200, 201, 400, 404, 409, 422]));
});

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function named(body: Record<string, unknown>, name: string): unknown {
  return { ...body, metadata: isPlainObject(body['metadata']) ? { ...body['metadata'], name } : { name } };
}
