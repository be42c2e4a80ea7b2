/** The suites through a transaction pooler that lends few sessions to all of an instance. */

import { afterAll, describe } from 'vitest';
import { type LocalServer, startLocalServer } from '#test/http/local-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import { watchSuite } from '#test/http/watch/suite.ts';
import { watchGroupsSuite } from '#test/http/watch-groups/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { noPgBouncer, type PgBouncer, startPgBouncer } from '#test/support/pgbouncer.ts';

describe.skipIf(noPgBouncer ?? !isEverywhere).each([
  ['with the database itself beside it', (databaseUrl: string) => databaseUrl],
  ['alone', () => 'none'],
] as const)('through PgBouncer in transaction mode, %s', (_name, directUrl) => {
  const use = (): (() => Promise<LocalServer>) => usePooled(directUrl);
  describe('the resource API', () => {
    const started = use();
    resourceApiSuite(async () => (await started()).targets.public);
  });
  // What the one suite leaves in the tenant that all share, the other would see.
  describe('watch', () => watchSuite(use()));
  describe('watch groups', () => watchGroupsSuite(use()));
});

/** The same one each time, until the end of the describe block. */
function usePooled(directUrl: (databaseUrl: string) => string): () => Promise<LocalServer> {
  let pooler: PgBouncer | undefined;
  let starting: Promise<LocalServer> | undefined;
  afterAll(async () => {
    await (await starting)?.stop();
    await pooler?.stop();
  });
  return () =>
    (starting ??= startLocalServer(async (databaseUrl) => {
      pooler = await startPgBouncer(databaseUrl);
      return { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: directUrl(databaseUrl) };
    }));
}
