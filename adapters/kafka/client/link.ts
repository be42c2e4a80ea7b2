/**
 * A client that is kept for as long as it answers: what reads go through. It remembers no topic, so none that was deleted
 * can spoil it, and takes the word of any broker that answers, so none that hangs can blind it.
 */

import { kafkaClient, shuffled } from '#adapters/kafka/client/client.ts';
import { type Broker, type Cluster, clusterOf } from '#adapters/kafka/client/cluster.ts';
import { Late, within } from '#adapters/kafka/client/deadline.ts';
import { ask, errorOf, leaderOf } from '#adapters/kafka/client/requests.ts';
import type { Session, SessionDeps } from '#adapters/kafka/client/session.ts';
import { createSockets } from '#adapters/kafka/client/sockets.ts';
import { firstOf } from '#adapters/kafka/client/stagger.ts';

/** Who leads a topic; undefined while nobody does, or when the principal may not know. */
export type Leader = number | 'missing' | undefined;

export interface Link extends Session {
  /** The leaders of these topics, as one of the brokers knows them now. @throws when none answers. */
  leaders(topics: readonly string[]): Promise<ReadonlyMap<string, Leader>>;
  /** Breaks its connections: what is under way is rejected. */
  end(): void;
}

const CONNECT_TIMEOUT_MS = 4_000;
const CONNECT_STAGGER_MS = 1_000;
/** For metadata: quiet brokers answer within some milliseconds. */
const ANSWER_TIMEOUT_MS = 2_000;
/** How long a broker that did not answer is asked last. */
const SHUN_MS = 10_000;
/** kafkajs's own, of all requests but Fetch, which has its own. */
const REQUEST_TIMEOUT_MS = 3_000;

/**
 * By way of any of the brokers that are known from the beginning: one that hangs costs a second.
 * @param signal ends it, also while it is being made.
 * @throws what kafkajs throws, or `Late`.
 */
export async function openLink(deps: SessionDeps, signal: AbortSignal): Promise<Link> {
  const ways = shuffled(deps.settings.brokers).map((broker) => async () => {
    return openLinkBy({ ...deps, settings: { ...deps.settings, brokers: [broker] } }, signal);
  });
  return firstOf(ways, CONNECT_STAGGER_MS, (link) => link.end());
}

async function openLinkBy({ settings, logger }: SessionDeps, signal: AbortSignal): Promise<Link> {
  signal.throwIfAborted();
  const sockets = createSockets(settings.openSocket);
  const options = {
    sockets,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    connectionTimeoutMs: CONNECT_TIMEOUT_MS,
    retries: 1,
  };
  const cluster = clusterOf(kafkaClient(settings, logger, options));
  signal.addEventListener('abort', end, { once: true });
  try {
    await within(connect(cluster), CONNECT_TIMEOUT_MS, 'connecting to the Kafka brokers');
  } catch (error) {
    end();
    throw error;
  }
  const shunnedUntilMs = new Map<number, number>();
  let members = '';

  return { leaders, broker, controller: () => askAny(async (any) => any), end };

  async function leaders(topics: readonly string[]): Promise<ReadonlyMap<string, Leader>> {
    return askAny(async (any) => {
      const { brokers, topicMetadata } = await ask(any, 'Metadata', { topics, allowAutoTopicCreation: false });
      await follow(brokers.map(({ nodeId, host, port }) => `${nodeId}=${host}:${port}`));
      return new Map(
        topicMetadata.map(({ topic, topicErrorCode, partitionMetadata }): [string, Leader] => {
          if (errorOf(topicErrorCode)?.type === 'UNKNOWN_TOPIC_OR_PARTITION') return [topic, 'missing'];
          return [topic, leaderOf(partitionMetadata)];
        }),
      );
    });
  }

  async function broker(nodeId: number): Promise<Broker> {
    return within(
      cluster.findBroker({ nodeId: String(nodeId) }),
      ANSWER_TIMEOUT_MS,
      `connecting to Kafka broker ${nodeId}`,
    );
  }

  /** kafkajs learns of other brokers only when it is told to look. */
  async function follow(brokers: readonly string[]): Promise<void> {
    const now = brokers.toSorted().join();
    if (now === members) return;
    await cluster.refreshMetadata();
    members = now;
  }

  /** One broker after the other, in another order each time: one that is cut off from the others believes old things. */
  async function askAny<T>(question: (broker: Broker) => Promise<T>): Promise<T> {
    let failure: unknown = new Late('no Kafka broker is known');
    for (const nodeId of candidates()) {
      try {
        const asked = broker(nodeId).then(question);
        return await within(asked, ANSWER_TIMEOUT_MS, `the answer of Kafka broker ${nodeId}`);
      } catch (error) {
        failure = error;
        shunnedUntilMs.set(nodeId, performance.now() + SHUN_MS);
      }
    }
    throw failure;
  }

  function candidates(): readonly number[] {
    const nowMs = performance.now();
    return cluster
      .getNodeIds()
      .map((id) => {
        const nodeId = Number(id);
        return { nodeId, key: Math.random() + ((shunnedUntilMs.get(nodeId) ?? 0) > nowMs ? 1 : 0) };
      })
      .toSorted((one, other) => one.key - other.key)
      .map(({ nodeId }) => nodeId);
  }

  function end(): void {
    signal.removeEventListener('abort', end);
    sockets.destroy();
    cluster.disconnect().catch(() => undefined);
  }
}

async function connect(cluster: Cluster): Promise<void> {
  await cluster.connect();
  await cluster.refreshMetadata();
}
