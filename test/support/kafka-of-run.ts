/** What `global-kafka.ts` and the tests agree on. */

export interface KafkaOfRun {
  /** Why there can be none here. */
  readonly problem?: string;
  /** Of 127.0.0.1: whoever connects is told the addresses of the shared broker, which is started for the first one. */
  readonly port: number;
}

/** One line of JSON, the answer on that port. */
export interface KafkaAnswer {
  readonly brokers?: readonly string[];
  readonly problem?: string;
}

export const FOLDER_PREFIX = 'plumbline-test-kafka-';

/** `PLUMBLINE_TEST_KAFKA_VERSION=3.9.2`, say: another Apache Kafka than the one of infra/kafka/pom.xml. */
export function chosenVersion(): { readonly version?: string } {
  const version = process.env['PLUMBLINE_TEST_KAFKA_VERSION'];
  return version ? { version } : {};
}

/** Retention within seconds; the broker looks for something to delete every five minutes by default. */
export const TEST_SETTINGS: Readonly<Record<string, string>> = {
  'log.retention.check.interval.ms': '1000',
  'log.segment.delete.delay.ms': '1000',
  'log.initial.task.delay.ms': '1000',
};
