/**
 * Reads of what lies behind: with a link of their own and few at a time, so that nobody who catches up delays a tail.
 */

import { toUnavailable, failureOf } from '#adapters/kafka/errors.ts';
import { createLeftovers, type Leftover } from '#adapters/kafka/reading/leftovers.ts';
import type { LinkHolder } from '#adapters/kafka/client/links.ts';
import { findWayOn } from '#adapters/kafka/reading/out-of-range.ts';
import { offsetBehind } from '#adapters/kafka/reading/placing.ts';
import { createSingleFetch } from '#adapters/kafka/reading/single-fetch.ts';
import type { Place } from '#adapters/kafka/reading/tail-reader.ts';
import { takeEvents } from '#adapters/kafka/reading/take-events.ts';
import { createTurns } from '#adapters/kafka/client/turns.ts';
import {
  type EventLog,
  type LogPoint,
  pointOf,
  PositionExpired,
  type ReadLimits,
  type ReadResult,
} from '#core/ports/event-log.ts';
import type { LogIndex } from '#core/ports/log-index.ts';
import { StatusError } from '#core/status-error.ts';

export interface ReadingDeps {
  readonly links: LinkHolder;
  readonly index: LogIndex;
  /** Something in a topic that is no event of its stream. */
  readonly onOddity: (topic: string, what: string) => void;
}

interface Wanted {
  readonly stream: bigint;
  readonly after: LogPoint;
  readonly limits: ReadLimits;
}

const READS_AT_ONCE = 4;
/** While the brokers are away; an answer that has begun to wait may take as long again. */
const PATIENCE_MS = 4_000;
const RETRY_MS = 100;
/** More makes it no faster: 256 KiB read 100,000 events/s. */
const MAX_FETCH_BYTES = 1024 * 1024;
const MIN_FETCH_BYTES = 64 * 1024;
const NOTHING: ReadResult = { events: [], more: false };

/** A log's `read`. */
export function createReading({ links, index, onOddity }: ReadingDeps): EventLog['read'] {
  const turns = createTurns(READS_AT_ONCE);
  const fetch = createSingleFetch(links);
  const leftovers = createLeftovers();

  return async function read(stream, after, limits) {
    const endsAtMs = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await readNow({ stream, after, limits });
      } catch (error) {
        if (error instanceof PositionExpired || error instanceof StatusError) throw error;
        if (performance.now() >= endsAtMs) throw toUnavailable(error, `the events of stream ${stream}`);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  };

  async function readNow(wanted: Wanted): Promise<ReadResult> {
    const { stream, after } = wanted;
    const leftover = leftovers.take(stream, after);
    const rest = leftover && takeFrom(leftover, wanted).result;
    if (rest && rest.events.length > 0) return rest;
    const indexed = (await index.streams([stream])).get(stream);
    if (!indexed) return NOTHING;
    const place = { topic: indexed.topic, offset: offsetBehind(stream, after, indexed) };
    if (after.seq >= indexed.assigned) return NOTHING;
    try {
      return await turns(() => readFrom(place, wanted));
    } catch (error) {
      if (failureOf(error) !== 'out of range') throw error;
      const offset = await findWayOn({ session: await links.get(), index, stream, point: after, place });
      // The broker that was asked may be none that leads the topic: it is asked again.
      if (offset === undefined || offset === place.offset) throw error;
      return turns(() => readFrom({ ...place, offset }, wanted));
    }
  }

  /** Goes on until there is an event: over repetitions, and what is none. */
  async function readFrom({ topic, offset: start }: Place, wanted: Wanted): Promise<ReadResult> {
    const maxBytes = Math.min(Math.max(wanted.limits.maxBytes, MIN_FETCH_BYTES), MAX_FETCH_BYTES);
    for (let offset = start; ;) {
      const fetched = await fetch({ topic, offset }, maxBytes);
      const { result, next } = takeFrom({ fetched, offset }, wanted);
      if (result.events.length > 0 || !result.more) return result;
      if (next === offset) throw new Error(`nothing whole was read of topic ${topic} at offset ${offset}`);
      offset = next;
    }
  }

  function takeFrom(
    { fetched, offset }: Leftover,
    { stream, after, limits }: Wanted,
  ): { readonly result: ReadResult; readonly next: bigint } {
    const { topic, batches, highWatermark } = fetched;
    const taken = takeEvents(batches, { stream, seq: after.seq, offset }, limits, (what) =>
      onOddity(topic, `${what} is no event of stream ${stream}`),
    );
    const newest = taken.events.at(-1);
    if (newest && taken.isCut) leftovers.keep(stream, pointOf(newest), { fetched, offset: taken.offset });
    const more = taken.isCut || taken.offset < highWatermark;
    return { result: { events: taken.events, more }, next: taken.offset };
  }
}
