/**
 * How many requests per second a tenant may make. Each process counts for itself, since functions share no memory: behind
 * n of them a tenant has n times as much.
 */

import type { Context, MiddlewareHandler } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { keyOf, nameOf, payerAt } from '#http/charged-to.ts';
import { isDeletion, isFinalizerPatch } from '#http/removals.ts';
import type { TenantLimits } from '#core/ports/tenant-limits.ts';
import { StatusError } from '#core/status-error.ts';
import { type Taking, TokenBuckets } from '#core/token-buckets.ts';

export interface RequestLimitOptions {
  readonly limits: TenantLimits;
  readonly onRefused: () => void;
}

/**
 * A refusal is held back for so long: who asks again at once, over a few connections, would else keep the process busy with
 * refusing. It wants to wait for a second anyway.
 */
const HELD_BACK_MS = 500;
/** Beyond so many they are answered at once. */
const MAX_HELD_BACK = 2_000;
/** About 2 MiB. */
const MAX_BUCKETS = 20_000;

/** Behind `authenticate`. Who is over the limit gets 429, before anything is read from the database. */
export function limitRequests({ limits, onRefused }: RequestLimitOptions): MiddlewareHandler<HttpEnv> {
  const buckets = new TokenBuckets(MAX_BUCKETS);
  let heldBack = 0;
  return async function requestLimit(c, next) {
    const payer = payerAt(c.get('caller'), c.req.path);
    const { requestsPerSecond } = 'tenant' in payer ? limits.of(payer.tenant) : limits.default;
    const taking = await take(c, keyOf(payer), requestsPerSecond);
    if (taking.isTaken) return next();
    onRefused();
    await holdBack();
    const advice =
      'tenant' in payer
        ? '; who runs this installation can raise spec.quota.requestsPerSecond of its Tenant object'
        : '';
    throw new StatusError(
      'TooManyRequests',
      `${nameOf(payer)} makes more than ${requestsPerSecond} requests per second to this server: wait as long as Retry-After says${advice}`,
      { details: { retryAfterSeconds: Math.max(1, Math.ceil(taking.waitMs / 1000)) } },
    );
  };

  /** Removals have a bucket of their own: they get through when the other one is spent, and a flood of them has an end too. */
  async function take(c: Context<HttpEnv>, key: string, perSecond: number): Promise<Taking> {
    const ofRemovals = `removals of ${key}`;
    if (isDeletion(c)) return buckets.take(ofRemovals, perSecond, performance.now());
    const taking = buckets.take(key, perSecond, performance.now());
    if (taking.isTaken || !(await isFinalizerPatch(c))) return taking;
    return buckets.take(ofRemovals, perSecond, performance.now());
  }

  async function holdBack(): Promise<void> {
    if (heldBack >= MAX_HELD_BACK) return;
    heldBack += 1;
    await new Promise((resolve) => setTimeout(resolve, HELD_BACK_MS));
    heldBack -= 1;
  }
}
