/** Servers, a resident publisher and scheduled ones through a transaction pooler, and with workerd among them. */

import { describe, expect, test } from 'vitest';
import { isEverywhere } from '#test/support/everywhere.ts';
import { noPgBouncer } from '#test/support/pgbouncer.ts';
import { testSeed } from '#test/support/random.ts';
import { type Deploy, mixed } from '#test/property/ordering/deployment.ts';
import { runScenario, type ScenarioReport } from '#test/property/ordering/scenario.ts';
import { CHANGES, expectOrder } from '#test/property/ordering/verdict.ts';
import { noWorkerd } from '#test/workerd/edge.ts';

async function playMixed(name: string, deploy: Deploy): Promise<ScenarioReport> {
  const seed = testSeed();
  const report = await runScenario({ seed, changes: CHANGES, deploy });
  console.log(`${name}: ${JSON.stringify({ seed, ...report, violations: report.violations.length })}`);
  expectOrder(report, seed);
  return report;
}

describe.skipIf(noPgBouncer ?? !isEverywhere)('in a mixed deployment', { timeout: 600_000 }, () => {
  test('through PgBouncer, every watcher gets every committed change once and in order', async () => {
    await playMixed('through PgBouncer', mixed());
  });

  test('so it is through PgBouncer alone, where nobody is told of anything', async () => {
    await playMixed('through PgBouncer alone', mixed({ isPoolerAlone: true }));
  });

  test.skipIf(noWorkerd)(
    'so it is with workerd among them, which publishes when it is kicked and by cron',
    async () => {
      const { publishedAtEdge } = await playMixed('with workerd', mixed({ withEdge: true }));
      expect(publishedAtEdge).toBeGreaterThan(0);
    },
  );
});
