/** The events of one stream out of what was fetched: each record is checked, whoever wrote it. */

import { visitRecords } from '#adapters/kafka/wire/record-batches.ts';
import { numberOf, toEvent } from '#adapters/kafka/records.ts';
import type { StreamEvent } from '#core/event.ts';
import type { ReadLimits } from '#core/ports/event-log.ts';

export interface TakePlace {
  readonly stream: bigint;
  /** Of the last event that was taken before. */
  readonly seq: bigint;
  /** From where it was fetched. */
  readonly offset: bigint;
}

export interface Taken {
  /** Each with a number above the one before: a repetition is left out. */
  readonly events: readonly StreamEvent[];
  /** From where to fetch what comes next. */
  readonly offset: bigint;
  /** The limits cut it short. */
  readonly isCut: boolean;
}

/**
 * The first events behind a place.
 * @param onStranger told of what is in the topic and no event of this stream: it is passed over.
 * @throws {CorruptBatch}
 */
export function takeEvents(
  batches: Buffer,
  place: TakePlace,
  limits: ReadLimits,
  onStranger: (what: string) => void,
): Taken {
  const events: StreamEvent[] = [];
  let last = place.seq;
  let bytes = 0;
  let isCut = false;
  const offset = visitRecords(
    batches,
    place.offset,
    (record) => {
      const number = numberOf(record);
      if (number?.stream === place.stream && number.seq <= last) return true;
      const event = number?.stream === place.stream ? toEvent(record) : undefined;
      if (!event) {
        onStranger(`the record at offset ${record.offset}`);
        return true;
      }
      bytes += event.size;
      isCut = events.length >= limits.maxCount || (events.length > 0 && bytes > limits.maxBytes);
      if (isCut) return false;
      events.push(event);
      last = event.seq;
      return true;
    },
    (reason) => onStranger(`a batch ${reason}`),
  );
  return { events, offset, isCut };
}
