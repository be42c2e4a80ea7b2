/** The settings of a topic at the brokers. */

import type { Broker } from '#adapters/kafka/client/cluster.ts';
import { ask, errorOf, type ResourceAnswer } from '#adapters/kafka/client/requests.ts';
import type { TopicSettings } from '#core/ports/topics.ts';

/** Kafka counts the batch: one event of the largest object with its headers, and then some. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Of the things that have settings; kafkajs's own name for it is none that modules can import. */
const TOPIC = 2;
/** A setting of the topic itself, not a default of the broker. */
const TOPIC_CONFIG = 1;

export function topicConfig({ retentionMs, retentionBytes = -1 }: TopicSettings): ReadonlyMap<string, string> {
  return new Map([
    ['cleanup.policy', 'delete'],
    ['compression.type', 'producer'],
    ['max.message.bytes', String(MAX_MESSAGE_BYTES)],
    ['retention.bytes', String(retentionBytes)],
    ['retention.ms', String(retentionMs)],
  ]);
}

/**
 * Changes what differs. Settings that somebody else gave the topic stay: they are all sent again, for a change replaces
 * the whole set.
 */
export async function adjustConfig(broker: Broker, topic: string, wanted: ReadonlyMap<string, string>): Promise<void> {
  const resource = { type: TOPIC, name: topic };
  const answer = resourceOf(await ask(broker, 'DescribeConfigs', { resources: [resource] }));
  const present = new Map<string, string>();
  for (const { configName, configValue, configSource } of answer.configEntries ?? []) {
    if (configSource === TOPIC_CONFIG && configValue !== null) present.set(configName, configValue);
  }
  if ([...wanted].every(([name, value]) => present.get(name) === value)) return;
  const configEntries = [...new Map([...present, ...wanted])].map(([name, value]) => ({ name, value }));
  resourceOf(await ask(broker, 'AlterConfigs', { resources: [{ ...resource, configEntries }] }));
}

function resourceOf({ resources }: ResourceAnswer): ResourceAnswer['resources'][number] {
  const [answer] = resources;
  if (!answer) throw new Error('the broker answered for no topic');
  const error = errorOf(answer.errorCode, answer.errorMessage);
  if (error) throw error;
  return answer;
}
