/** What the streams' logs hold: the index knows it, but for what retention has removed since it was last told. */

import type { TopicStarts } from '#adapters/kafka/reading/starts.ts';
import type { EventLog, LogRange } from '#core/ports/event-log.ts';
import type { IndexedStream, LogIndex } from '#core/ports/log-index.ts';

export interface RangesDeps {
  readonly index: LogIndex;
  readonly startsOf: TopicStarts;
}

/** A log's `ranges`. While the brokers are away it answers what the index knows. */
export function createRanges({ index, startsOf }: RangesDeps): EventLog['ranges'] {
  /** What the index was told, and need not be told again. */
  const told = new Map<string, bigint>();

  return async function ranges(streams) {
    const indexed = await index.streams(streams);
    const starts = await startsOf([...indexed.values()].map(({ topic }) => topic));
    const news = [...indexed.values()].filter(({ topic, ...known }) => {
      const start = starts.get(topic);
      return start !== undefined && start > firstOffset(known) && start !== told.get(topic);
    });
    if (news.length === 0) return rangesOf(indexed);
    for (const { topic } of news) {
      const start = starts.get(topic) ?? 0n;
      await index.advanceStart(topic, start);
      told.set(topic, start);
    }
    return rangesOf(await index.streams(streams));
  };
}

function firstOffset({ start, firstSeq }: Omit<IndexedStream, 'topic'>): bigint {
  return start.seq < firstSeq ? 0n : start.position + 1n;
}

function rangesOf(indexed: ReadonlyMap<bigint, IndexedStream>): ReadonlyMap<bigint, LogRange> {
  return new Map(
    [...indexed].map(([stream, { start, head, assigned }]) => [
      stream,
      { start: start.seq === head.seq ? head : start, head, assigned },
    ]),
  );
}
