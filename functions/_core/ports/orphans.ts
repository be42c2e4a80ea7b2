/** PORT. What is known of external objects whose owner is gone, kept over restarts. */

import type { ExternalObject } from '#core/reconcile/sweep.ts';

export interface Orphans {
  /**
   * Takes the complete list of what bears our marker. @returns those whose object has been gone for the grace time; what is
   * not in the list any more, or has an object, is forgotten.
   */
  note(controller: string, found: readonly ExternalObject[], graceMs: number): Promise<readonly ExternalObject[]>;
  /** Whether it still has no object. */
  isOrphan(controller: string, object: ExternalObject): Promise<boolean>;
  /** It is removed. */
  forget(controller: string, object: ExternalObject): Promise<void>;
}
