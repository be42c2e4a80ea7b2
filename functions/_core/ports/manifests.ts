/**
 * PORT. The outbox for a log that lives outside of PostgreSQL, where no one transaction can move a batch. In three steps:
 *
 * 1. `begin` commits the manifest: which records get which numbers. From here on that mapping never changes.
 * 2. The events are appended to the log.
 * 3. `complete` deletes the records and moves the frontier.
 *
 * Whoever dies or freezes in between, the batch can only be repeated with the same numbers, and readers keep the first
 * event of each. One publisher at a time has a batch, by a lease that only saves repetitions; what step 3 compares is the
 * batch's own token.
 */

import type { NumberedEvent } from '#core/event.ts';
import type { AppendedRun } from '#core/ports/event-writer.ts';
import type { BatchLimits, PublishResult } from '#core/ports/outbox.ts';

export interface Manifest {
  readonly stream: bigint;
  /** The batch's own: gone once the batch is finished. */
  readonly fencingToken: bigint;
  readonly topic: string;
  /** The position of the last published event in this topic; absent when there is none. */
  readonly lastPosition: bigint | undefined;
  readonly events: readonly NumberedEvent[];
}

export interface Manifests {
  /**
   * The next batch of a stream: an unfinished one as it was, or else the lowest visible records in order, dense behind
   * the frontier. Otherwise why there is none; see `PublishResult`.
   */
  begin(stream: bigint, limits: BatchLimits): Promise<Manifest | Exclude<PublishResult['outcome'], 'published'>>;

  /** Finishes the batch that lies in these runs; false when it is finished already, or was given up with its topic. */
  complete(manifest: Manifest, runs: readonly AppendedRun[]): Promise<boolean>;

  /** Holds the stream, because the log refuses this one of the events. Its number stays its own. */
  quarantine(manifest: Manifest, index: number, reason: string): Promise<void>;
}
