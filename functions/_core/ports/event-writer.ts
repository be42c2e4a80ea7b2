/** PORT. The writing end of a log that lives outside of PostgreSQL. Adapter: Kafka. */

import type { NumberedEvent } from '#core/event.ts';

export interface Append {
  readonly topic: string;
  /** The position of the last published event in this topic; absent when there is none. */
  readonly lastPosition: bigint | undefined;
  /** At least one, of one stream, numbered densely. */
  readonly events: readonly NumberedEvent[];
}

/** Events that lie at positions which follow each other. */
export interface AppendedRun {
  readonly firstPosition: bigint;
  readonly count: number;
}

export interface EventWriter {
  /**
   * Appends the events in order; when it resolves, they are on all in-sync replicas. Calls at the same time share
   * requests, and fail apart: what is wrong with one topic or record is told to its caller only.
   *
   * A rejection says nothing about what was written. Whoever appends the same events again may write them twice: their
   * numbers tell, and readers keep the first.
   * @throws {RecordTooLarge} when the log refuses one of them for its size.
   * @throws {TopicLost} when the topic is not there, or is not the one that it was.
   * @throws {StatusError} ServiceUnavailable for all else that may pass.
   */
  append(append: Append): Promise<readonly AppendedRun[]>;
}

/** The log takes no record of this size. */
export class RecordTooLarge extends Error {
  override readonly name = 'RecordTooLarge';
  /** Which of the events. */
  readonly index: number;

  constructor(index: number, message: string) {
    super(message);
    this.index = index;
  }
}

/** The topic is not what it was. */
export class TopicLost extends Error {
  override readonly name = 'TopicLost';
  /**
   * `missing`: the brokers know no such topic, which may pass after a restart; `replaced`: it has lost records that it
   * had acknowledged, which never does.
   */
  readonly how: 'missing' | 'replaced';

  constructor(how: 'missing' | 'replaced', message: string) {
    super(message);
    this.how = how;
  }
}
