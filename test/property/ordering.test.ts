import { expect, test } from 'vitest';
import { testSeed } from '#test/support/random.ts';
import { runScenario } from '#test/property/ordering/scenario.ts';

test(
  'every watcher gets every committed change once and in order, whoever is killed meanwhile',
  { timeout: 240_000 },
  async () => {
    const seed = testSeed();
    const { violations, ...report } = await runScenario({ seed, changes: 52_000 });
    console.log(`seed ${seed}:`, JSON.stringify(report));
    expect(violations.slice(0, 10), `PLUMBLINE_TEST_SEED=${seed}, ${violations.length} violations`).toEqual([]);
    expect(report.changes).toBeGreaterThanOrEqual(50_000);
  },
);
