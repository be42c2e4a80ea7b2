import { expect, test } from 'vitest';
import { testSeed } from '#test/support/random.ts';
import { runScenario } from '#test/property/ordering/scenario.ts';
import { CHANGES, expectOrder } from '#test/property/ordering/verdict.ts';

test(
  'every watcher gets every committed change once and in order, whoever is killed meanwhile',
  { timeout: 240_000 },
  async () => {
    const seed = testSeed();
    const report = await runScenario({ seed, changes: CHANGES });
    expectOrder(report, seed);
    expect(report.connections).toBeGreaterThan(100);
  },
);
