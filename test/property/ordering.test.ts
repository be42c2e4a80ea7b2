import { expect, test } from 'vitest';
import { testSeed } from '#test/support/random.ts';
import { runScenario } from '#test/property/ordering/scenario.ts';

const CHANGES = Number(process.env['PLUMBLINE_TEST_CHANGES'] ?? 26_000);

test(
  'every watcher gets every committed change once and in order, whoever is killed meanwhile',
  { timeout: 240_000 },
  async () => {
    const seed = testSeed();
    const { violations, ...report } = await runScenario({ seed, changes: CHANGES });
    expect(violations.slice(0, 10), `PLUMBLINE_TEST_SEED=${seed}, ${violations.length} violations`).toEqual([]);
    expect(report.changes).toBeGreaterThanOrEqual(CHANGES);
    // It was as rough as it was meant to be.
    expect(report.received).toBeGreaterThan(3 * CHANGES);
    expect(report.connections).toBeGreaterThan(100);
    expect(Math.min(report.chaos.killed, report.chaos.frozen, report.chaos.cut)).toBeGreaterThan(1);
  },
);
