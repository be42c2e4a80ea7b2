/** The suite of the resource API, and a publisher, through a transaction pooler that lends few sessions to all of them. */

import { afterAll, describe } from 'vitest';
import { type ApiServer, startApiServer } from '#test/http/api-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import { noPgBouncer, type PgBouncer, startPgBouncer } from '#test/support/pgbouncer.ts';

let pooler: PgBouncer | undefined;
let starting: Promise<ApiServer> | undefined;
const start = (): Promise<ApiServer> =>
  startApiServer({
    async pooler(databaseUrl) {
      pooler = await startPgBouncer(databaseUrl);
      return pooler.url;
    },
  });
afterAll(async () => {
  await pooler?.stop();
  await (await starting)?.stop();
});

describe.skipIf(noPgBouncer)('the resource API through PgBouncer in transaction mode', () => {
  resourceApiSuite(() => (starting ??= start()));
});
