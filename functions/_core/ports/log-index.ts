/**
 * PORT. What PostgreSQL knows about a log that lives outside of it: where each stream's events lie and how far they
 * reach. That log's adapter and the keeper of its topics ask it.
 */

import type { LogRange } from '#core/ports/event-log.ts';

export interface IndexedStream extends LogRange {
  /** Where its events lie now. A stream whose topic was lost goes on in another one, with the next number. */
  readonly topic: string;
  /** The number of the first event in this topic, at its first position. Events before it are nowhere any more. */
  readonly firstSeq: bigint;
}

export interface LogIndex {
  /** These streams, in one snapshot. Those that do not exist, or lie in no topic, are left out. */
  streams(ids: readonly bigint[]): Promise<ReadonlyMap<bigint, IndexedStream>>;

  /** The log has no events before this position of the topic any more. Does nothing when that is known. */
  advanceStart(topic: string, position: bigint): Promise<void>;

  /** Calls back soon after a topic changed in any way, and at least every few seconds, until the signal aborts. */
  onChange(listener: () => void, signal: AbortSignal): void;
}
