/** Where topics begin, as their leaders say: known for a second, and asked for once for all who want to know. */

import { within } from '#adapters/kafka/client/deadline.ts';
import { readExtents } from '#adapters/kafka/topics/extents.ts';
import type { LinkHolder } from '#adapters/kafka/client/links.ts';

/** The first offset of each of these topics; those are left out of which it cannot be known now. Never rejects. */
export type TopicStarts = (topics: readonly string[]) => Promise<ReadonlyMap<string, bigint>>;

const FRESH_MS = 1_000;
const KEPT_MS = 60_000;
/** For the brokers to answer; whoever asks has other knowledge too. */
const PATIENCE_MS = 2_000;
/** After they did not. */
const AWAY_MS = 2_000;

interface Known {
  /** Absent: the topic is not there. */
  readonly start: bigint | undefined;
  readonly atMs: number;
}

export function createTopicStarts(links: LinkHolder): TopicStarts {
  const known = new Map<string, Known>();
  const wanted = new Set<string>();
  let asking: Promise<void> | undefined;
  let awayUntilMs = 0;

  return async function startsOf(topics) {
    const nowMs = performance.now();
    const stale = topics.filter((topic) => nowMs - (known.get(topic)?.atMs ?? Number.NEGATIVE_INFINITY) > FRESH_MS);
    if (stale.length > 0 && nowMs >= awayUntilMs) await find(stale);
    // Starts only move on: an old one is not wrong.
    return new Map(
      topics.flatMap((topic) => {
        const start = known.get(topic)?.start;
        return start === undefined ? [] : [[topic, start] as const];
      }),
    );
  };

  async function find(topics: readonly string[]): Promise<void> {
    for (const topic of topics) wanted.add(topic);
    asking ??= askForWanted();
    try {
      await within(asking, PATIENCE_MS, 'the answer of the Kafka brokers');
    } catch {
      awayUntilMs = performance.now() + AWAY_MS;
    }
  }

  async function askForWanted(): Promise<void> {
    try {
      while (wanted.size > 0) {
        const topics = [...wanted];
        wanted.clear();
        const extents = await readExtents(await links.get(), topics);
        const atMs = performance.now();
        for (const [topic, { atMs: knownAtMs }] of known) if (atMs - knownAtMs > KEPT_MS) known.delete(topic);
        for (const topic of topics) {
          const extent = extents.get(topic);
          known.set(topic, { start: extent === 'missing' ? undefined : extent?.start, atMs });
        }
      }
    } finally {
      asking = undefined;
    }
  }
}
