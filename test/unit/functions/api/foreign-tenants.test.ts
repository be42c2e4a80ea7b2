/** What a caller may not see takes the same way as what does not exist: nobody is asked, so no clock tells them apart. */

import { expect, test } from 'vitest';

import { createApi } from '#functions/api/handler.ts';
import type { Caller } from '#core/identity.ts';
import { createKindRegistry } from '#core/kind-registry.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const caller: Caller = {
  audience: 'private',
  subject: 'ann',
  roles: ['admin', 'controller'],
  tenants: ['acme'],
  expiresAtMs: 0,
};

/** Each method of it fails the test by a 500. */
const untouchable = new Proxy(
  {},
  {
    get: (_, method) => () => {
      throw new Error(`${String(method)} was asked`);
    },
  },
) as never;

const api = createApi({
  store: untouchable,
  events: untouchable,
  forcedDeletions: untouchable,
  cursors: untouchable,
  continueTokens: untouchable,
  kinds: createKindRegistry(SHIPPED_KINDS),
  authenticate: (c, next) => {
    c.set('caller', caller);
    return next();
  },
  version: 'test',
  logger: silentLogger,
});

const ROOT = '/apis/plumbline.dev/v1';
const OBJECT = `${ROOT}/namespaces/globex/manageddatabases/orders`;

test.for([
  ['GET', `${ROOT}/namespaces/globex/manageddatabases`],
  ['GET', `${ROOT}/namespaces/globex/manageddatabases?limit=1&labelSelector=a%3Db`],
  ['POST', `${ROOT}/namespaces/globex/manageddatabases`],
  ['GET', OBJECT],
  ['HEAD', OBJECT],
  ['PUT', OBJECT],
  ['PATCH', OBJECT],
  ['DELETE', OBJECT],
  ['GET', `${OBJECT}/status`],
  ['PUT', `${OBJECT}/status`],
  ['PATCH', `${OBJECT}/status`],
  ['GET', `${OBJECT}/secrets`],
  ['GET', `${ROOT}/tenants/globex`],
  ['GET', `${ROOT}/tenants/globex/status`],
  ['PUT', `${ROOT}/tenants/globex`],
  ['PATCH', `${ROOT}/tenants/globex`],
  ['DELETE', `${ROOT}/tenants/globex`],
  ['GET', '/api/v1/namespaces/globex/events'],
  ['GET', '/api/v1/namespaces/globex/events/orders.1'],
] as const)('%s %s is 404 before anything is asked', async ([method, path]) => {
  const answer = await api.request(path, {
    method,
    ...(!['GET', 'HEAD'].includes(method) && { headers: { 'Content-Type': 'application/json' }, body: '{}' }),
  });
  const text = await answer.text();
  expect(answer.status, text).toBe(404);
});
