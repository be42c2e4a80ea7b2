/** Orphans: external objects that bear our marker and whose owner is gone. */

import type { Logger } from '#core/ports/logger.ts';

export interface ExternalObject {
  /** Such as `database`. */
  readonly class: string;
  /** Names it in its class, such as `local/acme_orders`. */
  readonly id: string;
  /** Of its marker. */
  readonly ownerUid: string;
}

export interface SweepContext {
  readonly installation: string;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export interface OrphanSweep {
  /** What is looked at by itself, such as each server: one that cannot be reached holds up no other. @default one, `''` */
  readonly parts?: readonly string[];
  /**
   * Everything in a part that bears the marker of this installation and kind, in the order in which it can be removed; it
   * must be complete, or throw.
   */
  list(ctx: SweepContext, part: string): Promise<readonly ExternalObject[]>;
  /** Removes one of them, after looking once more whether it still bears that marker. */
  remove(object: ExternalObject, ctx: SweepContext): Promise<void>;
}
