import { expect, test } from 'vitest';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { testSeed } from '#test/support/random.ts';
import { FORGETTING_MANIFESTS } from '#test/property/ordering/broken-publishers.ts';
import { runScenario } from '#test/property/ordering/scenario.ts';

/** It is wrong only where a transaction commits late, while a batch is under way and another publisher takes it over. */
const CHANGES = 10_000;
/** What such a publisher leaves behind may never come to rest. */
const PATIENCE_MS = 3_000;

describeKafka('over Kafka', () => {
  test('a publisher that forgets which numbers it gave is found out', { timeout: 120_000 }, async () => {
    const seed = testSeed();
    const { violations, logViolations } = await runScenario({
      seed,
      changes: CHANGES,
      brokers: await kafkaBrokers(),
      sabotage: FORGETTING_MANIFESTS,
      patienceMs: PATIENCE_MS,
    });
    const found = new Set(violations.map(({ rule }) => rule));
    expect([...found], `PLUMBLINE_TEST_SEED=${seed}`).toContain('twice');
    expect(logViolations.join('\n')).toMatch(/seq \d+ is \S+ and, at \d+, /);
  });
});
