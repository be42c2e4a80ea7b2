/** The suites where the clock stands still while code runs, as it does on workerd. */

import { afterAll, beforeAll, describe, expect, vi } from 'vitest';
import { type LocalServer, startLocalServer } from '#test/http/local-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import { watchSuite } from '#test/http/watch/suite.ts';
import { watchGroupsSuite } from '#test/http/watch-groups/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { standStill } from '#test/support/standing-clock.ts';

describe.skipIf(!isEverywhere)('where the clock stands still while code runs', () => {
  beforeAll(standStill);
  afterAll(() => {
    expect(vi.isMockFunction(performance.now)).toBe(true);
    vi.restoreAllMocks();
  });
  describe('the resource API', () => {
    const started = useServer();
    resourceApiSuite(async () => (await started()).targets.public);
  });
  describe('watch', () => watchSuite(useServer()));
  describe('watch groups', () => watchGroupsSuite(useServer()));
});

/** The same one each time, until the end of the describe block. */
function useServer(): () => Promise<LocalServer> {
  let starting: Promise<LocalServer> | undefined;
  afterAll(async () => (await starting)?.stop());
  return () => (starting ??= startLocalServer());
}
