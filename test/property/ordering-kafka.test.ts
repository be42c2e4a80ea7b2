import { expect, test } from 'vitest';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { testSeed } from '#test/support/random.ts';
import { runScenario } from '#test/property/ordering/scenario.ts';

const CHANGES = Number(process.env['PLUMBLINE_TEST_CHANGES'] ?? 26_000);

describeKafka('over Kafka', () => {
  test(
    'every watcher gets every committed change once and in order, whoever is killed meanwhile',
    { timeout: 240_000 },
    async () => {
      const seed = testSeed();
      const brokers = await kafkaBrokers();
      const { violations, logViolations, ...report } = await runScenario({ seed, changes: CHANGES, brokers });
      expect(violations.slice(0, 10), `PLUMBLINE_TEST_SEED=${seed}, ${violations.length} violations`).toEqual([]);
      expect(logViolations.slice(0, 10), `PLUMBLINE_TEST_SEED=${seed}`).toEqual([]);
      expect(report.changes).toBeGreaterThanOrEqual(CHANGES);
      // It was as rough as it was meant to be.
      expect(report.received).toBeGreaterThan(3 * CHANGES);
      expect(report.connections).toBeGreaterThan(100);
      expect(report.repeated).toBeGreaterThan(0);
      const { killed, frozen, cut, robbed } = report.chaos;
      expect(Math.min(killed, frozen, cut, robbed)).toBeGreaterThan(1);
      console.log(`over Kafka: ${JSON.stringify({ ...report, lost: 0, reordered: 0 })}`);
    },
  );
});
