/** What reconciling needs. */

import type { Logger } from '#core/ports/logger.ts';
import type { PassObjects, WorkQueue, WorkUpkeep } from '#core/ports/work-queue.ts';
import type { Kind } from '#core/kind.ts';

export interface ReconcileDeps {
  readonly queue: WorkQueue;
  readonly objects: PassObjects;
  readonly upkeep: WorkUpkeep;
  /** Those of this program, with their controllers. */
  readonly kinds: readonly Kind[];
  readonly logger: Logger;
  /** The duration of a lease, which is renewed three times in it. */
  readonly leaseMs: number;
  /** How many passes run at once in this process. */
  readonly concurrency: number;
  readonly reports?: PassReports;
}

/** How a pass ended: as its outcome in metrics. */
export type PassResult = 'done' | 'not-ready' | 'error' | 'terminal' | 'blocked' | 'finalized' | 'skipped' | 'fenced';

/** Told to whoever counts. */
export interface PassReports {
  /** @param durationMs from its begin until the store has its end. */
  onPass(controller: string, result: PassResult, durationMs: number): void;
  /** A function went on running after it was told to end. +1, and -1 when it has ended. */
  onHung(controller: string, change: 1 | -1): void;
  onError(error: unknown): void;
}
