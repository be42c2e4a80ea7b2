/** The suites through a transaction pooler that lends few sessions to all of an instance. */

import { afterAll, describe } from 'vitest';
import { type LocalServer, startLocalServer } from '#test/http/local-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import { watchSuite } from '#test/http/watch/suite.ts';
import { watchGroupsSuite } from '#test/http/watch-groups/suite.ts';
import { noPgBouncer, type PgBouncer, startPgBouncer } from '#test/support/pgbouncer.ts';

let pooler: PgBouncer | undefined;
let starting: Promise<LocalServer> | undefined;

const started = (): Promise<LocalServer> =>
  (starting ??= startLocalServer(async (databaseUrl) => {
    pooler = await startPgBouncer(databaseUrl);
    return { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: databaseUrl };
  }));

afterAll(async () => {
  await (await starting)?.stop();
  await pooler?.stop();
});

describe.skipIf(noPgBouncer)('through PgBouncer in transaction mode', () => {
  describe('the resource API', () => resourceApiSuite(async () => (await started()).targets.public));
  describe('watch', () => watchSuite(started));
  describe('watch groups', () => watchGroupsSuite(started));
});
