/** PORT. What is known of external objects whose owner is gone, kept over restarts. */

import type { ExternalObject } from '#core/reconcile/sweep.ts';

export interface SweptPart {
  readonly controller: string;
  readonly part: string;
}

export interface Orphans {
  /** Forgets what was known of other parts: nobody looks at them any more. */
  keepParts(controller: string, parts: readonly string[]): Promise<void>;
  /**
   * Takes the complete list of what bears our marker in a part. @returns those whose object has been gone for the grace
   * time; what is not in the list any more, or has an object, is forgotten.
   */
  note(place: SweptPart, found: readonly ExternalObject[], graceMs: number): Promise<readonly ExternalObject[]>;
  /** Whether it still has no object. */
  isOrphan(place: SweptPart, object: ExternalObject): Promise<boolean>;
  /** It is removed. */
  forget(place: SweptPart, object: ExternalObject): Promise<void>;
}
