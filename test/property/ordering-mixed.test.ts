/** Servers, a resident publisher and scheduled ones through a transaction pooler, and with workerd among them. */

import { describe, expect, test } from 'vitest';
import { isEverywhere } from '#test/support/everywhere.ts';
import { noPgBouncer } from '#test/support/pgbouncer.ts';
import { testSeed } from '#test/support/random.ts';
import { type Deploy, mixed } from '#test/property/ordering/deployment.ts';
import { runScenario, type ScenarioReport } from '#test/property/ordering/scenario.ts';
import { noWorkerd } from '#test/workerd/edge.ts';

const CHANGES = Number(process.env['PLUMBLINE_TEST_CHANGES'] ?? 26_000);

async function expectOrder(name: string, deploy: Deploy): Promise<ScenarioReport> {
  const seed = testSeed();
  const whole = await runScenario({ seed, changes: CHANGES, deploy });
  const { violations, ...report } = whole;
  console.log(`${name}: ${JSON.stringify({ seed, ...report, violations: violations.length })}`);
  expect(violations.slice(0, 10), `PLUMBLINE_TEST_SEED=${seed}, ${violations.length} violations`).toEqual([]);
  expect(report.changes).toBeGreaterThanOrEqual(CHANGES);
  // It was as rough as it was meant to be.
  expect(report.received).toBeGreaterThan(3 * CHANGES);
  expect(Math.min(report.chaos.killed, report.chaos.frozen, report.chaos.cut)).toBeGreaterThan(1);
  return whole;
}

describe.skipIf(noPgBouncer ?? !isEverywhere)('in a mixed deployment', { timeout: 600_000 }, () => {
  test('through PgBouncer, every watcher gets every committed change once and in order', async () => {
    await expectOrder('through PgBouncer', mixed());
  });

  test('so it is through PgBouncer alone, where nobody is told of anything', async () => {
    await expectOrder('through PgBouncer alone', mixed({ isPoolerAlone: true }));
  });

  test.skipIf(noWorkerd)(
    'so it is with workerd among them, which publishes when it is kicked and by cron',
    async () => {
      const { publishedAtEdge } = await expectOrder('with workerd', mixed({ withEdge: true }));
      expect(publishedAtEdge).toBeGreaterThan(0);
    },
  );
});
