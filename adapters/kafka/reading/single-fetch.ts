/** One fetch of one topic, by itself, from the broker that leads it. */

import { Growth } from '#adapters/kafka/client/alarm.ts';
import { Late, within } from '#adapters/kafka/client/deadline.ts';
import type { FetchedTopic } from '#adapters/kafka/wire/fetch-answer.ts';
import { fetchFrom } from '#adapters/kafka/reading/fetch-request.ts';
import { withoutSession } from '#adapters/kafka/reading/fetch-session.ts';
import type { Link } from '#adapters/kafka/client/link.ts';
import type { LinkHolder } from '#adapters/kafka/client/links.ts';
import { errorOf } from '#adapters/kafka/client/requests.ts';
import type { Place } from '#adapters/kafka/reading/tail-reader.ts';

/**
 * What lies there now; it does not wait for more. The bytes are a bound but for the first batch, which comes whole.
 * @throws the broker's error, what kafkajs throws, or `Late`.
 */
export type SingleFetch = (place: Place, maxBytes: number) => Promise<FetchedTopic>;

const LEADER_MAX_AGE_MS = 2_000;

export function createSingleFetch(links: LinkHolder): SingleFetch {
  const leaders = new Map<string, { readonly nodeId: number; readonly untilMs: number }>();
  // An answer may be large, and the network slow.
  const patienceMs = new Growth(4_000, 32_000);
  return fetch;

  async function fetch(place: Place, maxBytes: number): Promise<FetchedTopic> {
    const link = await links.get();
    try {
      const nodeId = await leaderOf(link, place.topic);
      const fetched = await fetchBy(link, nodeId, place, maxBytes);
      patienceMs.reset();
      const error = errorOf(fetched.errorCode);
      if (error) throw error;
      return fetched;
    } catch (error) {
      leaders.delete(place.topic);
      // Its connections may be dead without saying so.
      if (error instanceof Late) links.drop(link);
      throw error;
    }
  }

  async function fetchBy(
    link: Link,
    nodeId: number,
    { topic, offset }: Place,
    maxBytes: number,
  ): Promise<FetchedTopic> {
    const broker = await link.broker(nodeId);
    const timeoutMs = patienceMs.current;
    const options = { maxWaitMs: 0, timeoutMs, maxBytes, maxTopicBytes: maxBytes, connection: 'fetches' } as const;
    const fetching = fetchFrom(broker, withoutSession(new Map([[topic, offset]])), options);
    const answer = await within(fetching, timeoutMs, `the answer of Kafka broker ${nodeId}`).catch((error: unknown) => {
      if (error instanceof Late) patienceMs.next();
      throw error;
    });
    const [fetched] = answer.topics;
    if (!fetched) throw errorOf(answer.errorCode) ?? new Error(`Kafka broker ${nodeId} says nothing of topic ${topic}`);
    return fetched;
  }

  async function leaderOf(link: Link, topic: string): Promise<number> {
    const known = leaders.get(topic);
    if (known && known.untilMs > performance.now()) return known.nodeId;
    const leader = (await link.leaders([topic])).get(topic);
    if (typeof leader !== 'number') throw new Error(`topic ${topic} has no leader now`);
    leaders.set(topic, { nodeId: leader, untilMs: performance.now() + LEADER_MAX_AGE_MS });
    return leader;
  }
}
