/**
 * Tailing over one link: who leads which topic, and a poller for each of those brokers. It is given up with its link.
 *
 * A broker that does not lead a topic may answer fetches all the same, late (KIP-392), and one that is frozen never answers:
 * so leaders are asked for every other second, and what is under way to another broker is dropped.
 */

import { Late, within } from '#adapters/kafka/client/deadline.ts';
import type { FetchedTopic } from '#adapters/kafka/wire/fetch-answer.ts';
import { fetchFrom } from '#adapters/kafka/reading/fetch-request.ts';
import type { Leader, Link } from '#adapters/kafka/client/link.ts';
import { createPoller, type Poller } from '#adapters/kafka/reading/poller.ts';
import type { TailReader } from '#adapters/kafka/reading/tail-reader.ts';

export interface CourseDeps {
  readonly link: Link;
  /** How long an answer may take, beside the time that the broker was told to wait. */
  readonly patienceMs: number;
  readonly onFetched: (reader: TailReader, fetched: FetchedTopic) => void;
  /** A broker cannot be reached: its readers are let go, and may be offered again after a refresh. */
  readonly onLeaderLost: (error: unknown) => void;
  /** A broker has not answered in time: its connection, or all of them, may be dead without saying so. */
  readonly onSilence: (error: Late) => void;
}

export interface Course {
  /** It is fetched soon; false while it is not known from whom. */
  offer(reader: TailReader): boolean;
  /** What is under way for it is not wanted any more. */
  withdraw(reader: TailReader): void;
  /** Nothing is fetched from this topic until it is known again who leads it. */
  doubt(topic: string): void;
  /**
   * Asks who leads the topics of these readers. Those whose leader has changed are let go, and may be offered again.
   * @returns the topics that the brokers do not know.
   * @throws when no broker answers.
   */
  refresh(readers: ReadonlySet<TailReader>): Promise<readonly string[]>;
  end(): void;
}

export function createCourse({ link, patienceMs, onFetched, onLeaderLost, onSilence }: CourseDeps): Course {
  const pollers = new Map<number, Poller>();
  /** The broker from which each topic is fetched. */
  const sources = new Map<string, number>();
  const doubted = new Set<string>();

  return {
    offer(reader) {
      const { topic } = reader.place ?? {};
      const source = topic === undefined || doubted.has(topic) ? undefined : sources.get(topic);
      if (source === undefined) return false;
      pollerOf(source).offer(reader);
      return true;
    },

    withdraw,
    doubt: (topic) => void doubted.add(topic),

    async refresh(readers) {
      const topics = new Set([...readers].flatMap(({ place }) => place?.topic ?? []));
      const leaders = await link.leaders([...topics]);
      for (const reader of readers) {
        const { topic } = reader.place ?? {};
        if (topic !== undefined && topics.has(topic) && sources.get(topic) !== leaders.get(topic)) withdraw(reader);
      }
      setSources(leaders);
      return [...leaders].flatMap(([topic, leader]) => (leader === 'missing' ? topic : []));
    },

    end() {
      for (const poller of pollers.values()) poller.end();
      pollers.clear();
      sources.clear();
    },
  };

  function withdraw(reader: TailReader): void {
    const source = reader.place && sources.get(reader.place.topic);
    if (source !== undefined) pollers.get(source)?.withdraw(reader);
  }

  function setSources(leaders: ReadonlyMap<string, Leader>): void {
    sources.clear();
    doubted.clear();
    for (const [topic, leader] of leaders) if (typeof leader === 'number') sources.set(topic, leader);
    const inUse = new Set(sources.values());
    for (const [nodeId, poller] of pollers) {
      if (inUse.has(nodeId)) continue;
      poller.end();
      pollers.delete(nodeId);
    }
  }

  function pollerOf(nodeId: number): Poller {
    const known = pollers.get(nodeId);
    if (known) return known;
    const poller = createPoller({
      async fetch(request, options) {
        const broker = await link.broker(nodeId).catch((error: unknown) => {
          throw new Error(`Kafka broker ${nodeId} cannot be reached`, { cause: error });
        });
        const timeoutMs = options.maxWaitMs + patienceMs;
        const fetched = fetchFrom(broker, request, { ...options, timeoutMs });
        return within(fetched, timeoutMs, `the answer of Kafka broker ${nodeId}`);
      },
      onFetched,
      onFailed(error) {
        pollers.delete(nodeId);
        for (const [topic, source] of sources) if (source === nodeId) sources.delete(topic);
        if (error instanceof Late) onSilence(error);
        else onLeaderLost(error);
      },
    });
    pollers.set(nodeId, poller);
    return poller;
  }
}
