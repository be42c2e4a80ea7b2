/** The suites through a transaction pooler that lends few sessions to all of an instance. */

import { afterAll, describe } from 'vitest';
import { type LocalServer, startLocalServer } from '#test/http/local-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import { watchSuite } from '#test/http/watch/suite.ts';
import { watchGroupsSuite } from '#test/http/watch-groups/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { noPgBouncer, type PgBouncer, startPgBouncer } from '#test/support/pgbouncer.ts';

describe.skipIf(noPgBouncer ?? !isEverywhere)('through PgBouncer in transaction mode', () => {
  describe('the resource API', () => {
    const started = usePooled();
    resourceApiSuite(async () => (await started()).targets.public);
  });
  // What the one suite leaves in the tenant that all share, the other would see.
  describe('watch', () => watchSuite(usePooled()));
  describe('watch groups', () => watchGroupsSuite(usePooled()));
});

/** The same one each time, until the end of the describe block. */
function usePooled(): () => Promise<LocalServer> {
  let pooler: PgBouncer | undefined;
  let starting: Promise<LocalServer> | undefined;
  afterAll(async () => {
    await (await starting)?.stop();
    await pooler?.stop();
  });
  return () =>
    (starting ??= startLocalServer(async (databaseUrl) => {
      pooler = await startPgBouncer(databaseUrl);
      return { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: databaseUrl };
    }));
}
