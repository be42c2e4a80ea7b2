/**
 * Places for watches of this process: so many in all, and so many for each tenant. Each process counts for itself, as it
 * is its memory that they take.
 */

import { SHARED_TENANT, type TenantSet } from '#core/identity.ts';
import type { TenantLimits } from '#core/ports/tenant-limits.ts';
import { StatusError } from '#core/status-error.ts';
import { keyOf, nameOf, payersOf } from '#http/charged-to.ts';

export interface WatchPlaces {
  /**
   * Takes a place, or one for each tenant that was named. Returns the way to give it back; once is enough.
   * @throws {StatusError} TooManyRequests.
   */
  take(subject: string, tenants: TenantSet): () => void;
}

export interface WatchPlacesOptions {
  readonly limits: TenantLimits;
  /** Of all tenants together. */
  readonly maxWatchers: number;
  readonly onRefused: () => void;
}

/** A watch lives for minutes: who is refused gains nothing by asking each second. */
const RETRY_SECONDS = 10;

export function createWatchPlaces({ limits, maxWatchers, onRefused }: WatchPlacesOptions): WatchPlaces {
  const taken = new Map<string, number>();
  let open = 0;
  return { take };

  function take(subject: string, tenants: TenantSet): () => void {
    if (open >= maxWatchers) throw refusal(`this server has ${open} open watches, as many as it may; try another one`);
    const payers = payersOf(subject, tenants, SHARED_TENANT);
    for (const payer of payers) {
      const used = taken.get(keyOf(payer)) ?? 0;
      const { watchers } = 'tenant' in payer ? limits.of(payer.tenant) : limits.default;
      if (used < watchers) continue;
      const advice =
        'tenant' in payer
          ? ', or ask who runs this installation to raise spec.quota.watchers of its Tenant object'
          : '';
      throw refusal(
        `${nameOf(payer)} has ${used} open watches at this server, and may have ${watchers}: close some${advice}`,
      );
    }
    const keys = payers.map(keyOf);
    open += 1;
    for (const key of keys) taken.set(key, (taken.get(key) ?? 0) + 1);
    let isGiven = false;
    return function giveBack() {
      if (isGiven) return;
      isGiven = true;
      open -= 1;
      for (const key of keys) {
        const left = (taken.get(key) ?? 1) - 1;
        if (left > 0) taken.set(key, left);
        else taken.delete(key);
      }
    };
  }

  function refusal(message: string): StatusError {
    onRefused();
    return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: RETRY_SECONDS } });
  }
}
