/** Whether the principal may do what can be tried without changing anything. */

import { randomUUID } from 'node:crypto';

import type { Broker } from '#adapters/kafka/client/cluster.ts';
import { failureOf } from '#adapters/kafka/errors.ts';
import { ask, errorOf } from '#adapters/kafka/client/requests.ts';
import { topicConfig } from '#adapters/kafka/topics/topic-config.ts';

const DAY_MS = 86_400_000;
const TIMEOUT_MS = 5_000;

/** Undefined when all is well. */
export async function rightsProblem(broker: Broker, topicPrefix: string): Promise<string | undefined> {
  return (await createProblem(broker, topicPrefix)) ?? (await writeProblem(broker, topicPrefix));
}

async function createProblem(broker: Broker, topicPrefix: string): Promise<string | undefined> {
  const settings = topicConfig({ retentionMs: DAY_MS, retentionBytes: undefined });
  const configEntries = [...settings].map(([name, value]) => ({ name, value }));
  const topic = `${topicPrefix}check.${randomUUID()}`;
  const { topicErrors } = await ask(broker, 'CreateTopics', {
    topics: [{ topic, numPartitions: 1, replicationFactor: -1, configEntries }],
    validateOnly: true,
    timeout: TIMEOUT_MS,
  });
  const error = errorOf(topicErrors[0]?.errorCode ?? 0, topicErrors[0]?.errorMessage);
  if (!error) return undefined;
  return failureOf(error) === 'unauthorised'
    ? `the Kafka principal may not create topics named "${topicPrefix}…"; grant it Create on that prefix`
    : `the Kafka brokers would not create a topic named "${topicPrefix}…": ${error.type}: ${error.message}`;
}

/** Producers that write nothing twice need a number from the brokers, who give it to whoever may write to any topic. */
async function writeProblem(broker: Broker, topicPrefix: string): Promise<string | undefined> {
  const { errorCode } = await ask(broker, 'InitProducerId', { transactionTimeout: TIMEOUT_MS });
  const error = errorOf(errorCode);
  // Anything else passes: brokers that have just started have no numbers to give yet.
  return error && failureOf(error) === 'unauthorised'
    ? `the Kafka principal may not write; grant it Write on topics named "${topicPrefix}…"`
    : undefined;
}
