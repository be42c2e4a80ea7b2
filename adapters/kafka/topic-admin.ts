/** The topics at the brokers: one of one partition for each stream, with the settings that its tenant asks for. */

import type { Broker } from '#adapters/kafka/client/cluster.ts';
import { toUnavailable } from '#adapters/kafka/errors.ts';
import { readExtents } from '#adapters/kafka/topics/extents.ts';
import { ask, errorOf } from '#adapters/kafka/client/requests.ts';
import { inSession, type Session, type SessionDeps } from '#adapters/kafka/client/session.ts';
import { adjustConfig, topicConfig } from '#adapters/kafka/topics/topic-config.ts';
import { topicStates, type TopicState } from '#adapters/kafka/topics/topic-metadata.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';
import { StatusError } from '#core/status-error.ts';

const TIMEOUT_MS = 15_000;
/** The brokers' own, for a deed. */
const DEED_TIMEOUT_MS = 10_000;
const POLL_INTERVAL_MS = 20;

/** Each call is a visit of its own: nothing is open in between, and no deleted topic can spoil a later one. */
export function kafkaTopicAdmin(deps: SessionDeps): TopicAdmin {
  return {
    async ensure(name, settings) {
      return visit(`topic ${name}`, async ({ controller }) => {
        const broker = await controller();
        const config = topicConfig(settings);
        const isNew = await create(broker, name, config);
        const { partitions, identity } = await untilWritable(broker, name);
        if (partitions !== 1) {
          throw new StatusError(
            'ServiceUnavailable',
            `topic ${name} has ${partitions} partitions and must have 1: it is not of our making; remove it`,
          );
        }
        if (!isNew) await adjustConfig(broker, name, config);
        return identity;
      });
    },

    async remove(name) {
      await visit(`topic ${name}`, async ({ controller }) => {
        const broker = await controller();
        const { topicErrors } = await ask(broker, 'DeleteTopics', { topics: [name], timeout: DEED_TIMEOUT_MS });
        const error = errorOf(topicErrors[0]?.errorCode ?? 0);
        if (error && error.type !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error;
        await untilGone(broker, name);
      });
    },

    async extents(names) {
      if (names.length === 0) return new Map();
      return visit(`${names.length} topics`, (session) => readExtents(session, names));
    },
  };

  async function visit<T>(subject: string, work: (session: Session) => Promise<T>): Promise<T> {
    try {
      return await inSession(deps, TIMEOUT_MS, work);
    } catch (error) {
      throw toUnavailable(error, subject);
    }
  }
}

/** False when it is there already. */
async function create(broker: Broker, name: string, config: ReadonlyMap<string, string>): Promise<boolean> {
  const { topicErrors } = await ask(broker, 'CreateTopics', {
    topics: [
      {
        topic: name,
        numPartitions: 1,
        // The brokers' default, since Kafka 2.4 (KIP-464).
        replicationFactor: -1,
        configEntries: [...config].map(([key, value]) => ({ name: key, value })),
      },
    ],
    timeout: DEED_TIMEOUT_MS,
  });
  const [answer] = topicErrors;
  const error = errorOf(answer?.errorCode ?? 0, answer?.errorMessage);
  if (error && error.type !== 'TOPIC_ALREADY_EXISTS') throw error;
  return !error;
}

/** Waits until the broker knows of it, and of a leader. */
async function untilWritable(broker: Broker, name: string): Promise<TopicState> {
  for (;;) {
    const state = await stateOf(broker, name);
    if (state !== 'missing' && state.leader !== undefined) return state;
    await pause();
  }
}

async function untilGone(broker: Broker, name: string): Promise<void> {
  while ((await stateOf(broker, name)) !== 'missing') await pause();
}

async function stateOf(broker: Broker, name: string): Promise<TopicState | 'missing'> {
  return (await topicStates(broker, [name])).get(name) ?? 'missing';
}

/** Whoever waits does so until the visit is over: then the next request fails. */
async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
}
