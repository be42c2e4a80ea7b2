import { expect, test } from 'vitest';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { testSeed } from '#test/support/random.ts';
import { runScenario } from '#test/property/ordering/scenario.ts';
import { CHANGES, expectOrder } from '#test/property/ordering/verdict.ts';

describeKafka('over Kafka', () => {
  test(
    'every watcher gets every committed change once and in order, whoever is killed meanwhile',
    { timeout: 240_000 },
    async () => {
      const seed = testSeed();
      const brokers = await kafkaBrokers();
      const whole = await runScenario({ seed, changes: CHANGES, brokers });
      expectOrder(whole, seed);
      const { violations: _, logViolations: __, ...report } = whole;
      expect(report.connections).toBeGreaterThan(100);
      expect(report.repeated).toBeGreaterThan(0);
      expect(report.chaos.robbed).toBeGreaterThan(1);
      console.log(`over Kafka: ${JSON.stringify({ ...report, lost: 0, reordered: 0 })}`);
    },
  );
});
