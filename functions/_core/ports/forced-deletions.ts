/** PORT. What was kept of finalizers that were taken off by hand. */

import type { Scope } from '#core/identity.ts';

export interface ForcedDeletion {
  /** Larger is later. */
  readonly id: bigint;
  readonly at: Date;
  readonly tenant: string;
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly removedFinalizers: readonly string[];
  readonly deletionRequestedAt: Date;
  readonly by: string;
  readonly reason: string;
}

export interface ForcedDeletions {
  /**
   * The latest first; of one tenant, or of all in the scope; those before an id. Those of earlier tenants of the same name
   * are for scopes of all tenants alone.
   */
  list(
    scope: Scope,
    params: { readonly tenant?: string; readonly before?: bigint; readonly limit: number },
  ): Promise<readonly ForcedDeletion[]>;
}
