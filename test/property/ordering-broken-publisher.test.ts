import { expect, test } from 'vitest';
import { testSeed } from '#test/support/random.ts';
import { ORDERED_BY_TRANSACTION_ID, WITHOUT_EXCLUSION } from '#test/property/ordering/broken-publishers.ts';
import { runScenario } from '#test/property/ordering/scenario.ts';

const CHANGES = 4_000;
/** What such a publisher leaves behind may never come to rest. */
const PATIENCE_MS = 3_000;

test.each([
  ['publishes by transaction id', ORDERED_BY_TRANSACTION_ID, 'order'],
  ['does not keep others away', WITHOUT_EXCLUSION, 'twice'],
])('a publisher that %s is found out', { timeout: 120_000 }, async (_name, sabotage, rule) => {
  const seed = testSeed();
  const { violations } = await runScenario({ seed, changes: CHANGES, sabotage, patienceMs: PATIENCE_MS });
  const found = new Set(violations.map((violation) => violation.rule));
  expect([...found], `PLUMBLINE_TEST_SEED=${seed}`).toContain(rule);
});
