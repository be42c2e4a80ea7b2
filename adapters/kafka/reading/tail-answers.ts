/** What an answer means to a tail: events, nothing, or something to be mended, while which the tail rests. */

import { failureOf } from '#adapters/kafka/errors.ts';
import type { FetchedTopic } from '#adapters/kafka/wire/fetch-answer.ts';
import { findWayOn } from '#adapters/kafka/reading/out-of-range.ts';
import { errorOf } from '#adapters/kafka/client/requests.ts';
import type { Session } from '#adapters/kafka/client/session.ts';
import type { TailReader } from '#adapters/kafka/reading/tail-reader.ts';
import { PositionExpired } from '#core/ports/event-log.ts';
import type { LogIndex } from '#core/ports/log-index.ts';

export interface TailAnswersDeps {
  readonly index: LogIndex;
  /** Something in a topic that is no event of its stream, or that keeps it from being read. */
  readonly onOddity: (topic: string, what: string) => void;
  /** Whom to ask whether an offset exists. */
  readonly session: () => Session | undefined;
  /** Who leads the topic is to be found out. */
  readonly onDoubt: (topic: string) => void;
  /** Where the streams lie is to be looked up. */
  readonly onLost: () => void;
  /** The reader can be fetched again. */
  readonly onMended: (reader: TailReader) => void;
}

/** Gives a reader what came for it. */
export type TakeAnswer = (reader: TailReader, fetched: FetchedTopic) => void;

/** Of what is not mended by asking again at once. */
const REST_MS = 1_000;

export function createTakeAnswer(deps: TailAnswersDeps): TakeAnswer {
  const { index, onOddity, session, onDoubt, onLost, onMended } = deps;
  return takeAnswer;

  function takeAnswer(reader: TailReader, { topic, errorCode, batches }: FetchedTopic): void {
    const error = errorOf(errorCode);
    if (!error) {
      takeBatches(reader, topic, batches);
      return;
    }
    const failure = failureOf(error);
    if (failure === 'out of range') {
      void mend(reader, topic);
    } else if (failure === 'unauthorised') {
      onOddity(topic, 'the Kafka principal may not read it; grant it');
      rest(reader);
    } else {
      onDoubt(topic);
      onMended(reader);
    }
  }

  function takeBatches(reader: TailReader, topic: string, batches: Buffer): void {
    try {
      reader.take(batches, (what) => onOddity(topic, `${what} is no event of stream ${reader.stream}`));
      onMended(reader);
    } catch (error) {
      onOddity(topic, `cannot be read: ${String(error)}`);
      rest(reader);
    }
  }

  async function mend(reader: TailReader, topic: string): Promise<void> {
    reader.isResting = true;
    try {
      const offset = await wayOn(reader);
      if (reader.place?.topic === topic && offset !== undefined) reader.place = { topic, offset };
      if (offset === undefined) onLost();
      // The broker that was asked may be none that leads the topic.
      onDoubt(topic);
      if (offset === undefined) rest(reader);
      else wake(reader);
    } catch (error) {
      if (error instanceof PositionExpired) reader.fail(error);
      else rest(reader);
    }
  }

  async function wayOn({ stream, point, place }: TailReader): Promise<bigint | undefined> {
    const asked = session();
    if (!asked || !place) return undefined;
    return findWayOn({ session: asked, index, stream, point, place });
  }

  function rest(reader: TailReader): void {
    reader.isResting = true;
    setTimeout(() => wake(reader), REST_MS);
  }

  function wake(reader: TailReader): void {
    reader.isResting = false;
    onMended(reader);
  }
}
