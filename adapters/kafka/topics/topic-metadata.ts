/** What a broker knows of topics: which there are, and who leads them. */

import type { Broker } from '#adapters/kafka/client/cluster.ts';
import { askForIdentifiedTopics, type IdentifiedTopic } from '#adapters/kafka/topics/identified-topics.ts';
import { ask, errorOf, leaderOf, type TopicMetadata } from '#adapters/kafka/client/requests.ts';
import { inSession, type SessionDeps } from '#adapters/kafka/client/session.ts';

export interface TopicState {
  /** Tells it from others of its name; undefined when the brokers are older than Kafka 2.8. */
  readonly identity: string | undefined;
  readonly partitions: number;
  /** Of its first partition; undefined while there is none. */
  readonly leader: number | undefined;
}

/**
 * The topics, by the metadata of one broker. It may be behind the others for some milliseconds, and knows less while it
 * starts.
 * @throws {Error} when the principal may not see one of them, or its state cannot be known.
 */
export async function topicStates(
  broker: Broker,
  topics: readonly string[],
): Promise<ReadonlyMap<string, TopicState | 'missing'>> {
  const found =
    (await askForIdentifiedTopics(broker, topics)) ??
    (await ask(broker, 'Metadata', { topics, allowAutoTopicCreation: false })).topicMetadata;
  return new Map(found.map((topic) => [topic.topic, stateOf(topic)]));
}

function stateOf(topic: TopicMetadata | IdentifiedTopic): TopicState | 'missing' {
  const { topicErrorCode, partitionMetadata } = topic;
  const error = errorOf(topicErrorCode);
  if (error?.type === 'UNKNOWN_TOPIC_OR_PARTITION') return 'missing';
  if (error && error.type !== 'LEADER_NOT_AVAILABLE') throw error;
  return {
    identity: 'identity' in topic ? topic.identity : undefined,
    partitions: partitionMetadata.length,
    leader: leaderOf(partitionMetadata),
  };
}

/** Whether the brokers know no such topic. @throws when that cannot be known. */
export async function isMissing(deps: SessionDeps, topic: string, timeoutMs: number): Promise<boolean> {
  return inSession(deps, timeoutMs, async ({ controller }) => {
    const states = await topicStates(await controller(), [topic]);
    return states.get(topic) === 'missing';
  });
}
