/** One tail: where its consumer is, and what is under way for it. It is filled when its consumer has taken all. */

import { takeEvents } from '#adapters/kafka/reading/take-events.ts';
import type { StreamEvent } from '#core/event.ts';
import { type LogPoint, pointOf, type ReadLimits } from '#core/ports/event-log.ts';

/** Where the next record of a stream is looked for. */
export interface Place {
  readonly topic: string;
  readonly offset: bigint;
}

const WHOLE: ReadLimits = { maxCount: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

type Outcome = readonly StreamEvent[] | 'closed';

export class TailReader {
  readonly stream: bigint;
  /** Absent while it is not known where the stream's events lie. */
  place: Place | undefined;
  /** The fetch that it is part of; the answer of any other is not for it. */
  flight: object | undefined;
  /** It is not fetched for now. */
  isResting = false;
  #point: LogPoint;
  #consumer: PromiseWithResolvers<Outcome> | undefined;
  #isClosed = false;
  #failure: Error | undefined;

  constructor(stream: bigint, after: LogPoint) {
    this.stream = stream;
    this.#point = after;
  }

  /** Behind the last event that was given. */
  get point(): LogPoint {
    return this.#point;
  }

  get isReady(): boolean {
    return this.#consumer !== undefined && this.place !== undefined && this.flight === undefined && !this.isResting;
  }

  /** What comes next, at least one event. @throws what it was made to fail with. */
  async next(): Promise<Outcome> {
    if (this.#failure) throw this.#failure;
    if (this.#isClosed) return 'closed';
    this.#consumer = Promise.withResolvers<Outcome>();
    return this.#consumer.promise;
  }

  /** Gives its consumer what is new in these batches. @throws {CorruptBatch} */
  take(batches: Buffer, onStranger: (what: string) => void): void {
    if (!this.place || batches.length === 0) return;
    const { topic, offset } = this.place;
    const taken = takeEvents(batches, { stream: this.stream, seq: this.#point.seq, offset }, WHOLE, onStranger);
    this.place = { topic, offset: taken.offset };
    const newest = taken.events.at(-1);
    if (!newest) return;
    this.#point = pointOf(newest);
    this.#settle(taken.events);
  }

  fail(error: Error): void {
    this.#failure = error;
    this.#consumer?.reject(error);
    this.#consumer = undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#settle('closed');
  }

  #settle(outcome: Outcome): void {
    this.#consumer?.resolve(outcome);
    this.#consumer = undefined;
  }
}
