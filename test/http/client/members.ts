/** Members of groups, each in a loop of its own that ends with the test, and what they have handled. */

import { afterEach } from 'vitest';
import { consume, type ConsumeOptions, type Delivery, type Failure, type Membership } from 'plumbline/client';
import { QUICKLY } from '#test/http/client/world.ts';
import type { World } from '#test/http/resource-api/world.ts';
import type { Grant } from '#test/http/target.ts';
import { viewerOf } from '#test/http/watch/world.ts';
import { createChanges } from '#test/support/changes.ts';

export interface Member {
  /** In the order in which their handling has ended well. */
  readonly handled: readonly Delivery[];
  readonly failures: readonly Failure<Record<string, unknown>, Record<string, unknown>>[];
  readonly joins: readonly Membership[];
  readonly retries: readonly Error[];
  /** Settles when it has ended; with its error. Never rejects. */
  readonly ended: Promise<unknown>;
  /** Looks again whenever something has happened here. @throws when it has ended, or at the deadline. */
  until(isSo: () => boolean): Promise<void>;
  /** Something has happened. */
  tell(): void;
  /** Ends it in peace. */
  leave(): Promise<unknown>;
}

export type MemberOptions = Partial<Omit<ConsumeOptions, 'signal'>> & {
  readonly group: string;
  /** @default a viewer of the world's tenant */
  readonly grant?: Grant;
};

const DEADLINE_MS = 30_000;

export function useMembers(world: World): (options: MemberOptions) => Promise<Member> {
  const members: Member[] = [];
  afterEach(async () => {
    await Promise.all(members.splice(0).map((member) => member.leave()));
  });
  return async ({ grant = viewerOf(world), ...options }) => {
    const member = run({
      url: world.target.baseUrl,
      token: await world.target.token(grant),
      tenants: [world.tenant],
      retry: QUICKLY,
      handler: () => undefined,
      onResync: () => undefined,
      ...options,
    });
    members.push(member);
    return member;
  };
}

function run(options: Omit<ConsumeOptions, 'signal'>): Member {
  const handled: Delivery[] = [];
  const failures: Failure<Record<string, unknown>, Record<string, unknown>>[] = [];
  const joins: Membership[] = [];
  const retries: Error[] = [];
  const changes = createChanges();
  const leaving = new AbortController();
  let isEnded = false;
  const noted =
    <Value>(list: Value[], also?: (value: Value) => void) =>
    (value: Value): void => {
      list.push(value);
      also?.(value);
      changes.tell();
    };
  const ended = consume({
    ...options,
    async handler(delivery, context) {
      await options.handler(delivery, context);
      noted(handled)(delivery);
    },
    async onResync(tenant) {
      await options.onResync(tenant);
      changes.tell();
    },
    onTenantGone(tenant) {
      options.onTenantGone?.(tenant);
      changes.tell();
    },
    onFailure: noted(failures, options.onFailure),
    onJoin: noted(joins, options.onJoin),
    onRetry: noted(retries),
    signal: leaving.signal,
  })
    .then(
      () => undefined,
      (error: unknown) => error,
    )
    .finally(() => {
      isEnded = true;
      changes.tell();
    });

  return {
    handled,
    failures,
    joins,
    retries,
    ended,
    async until(isSo) {
      const deadline = performance.now() + DEADLINE_MS;
      while (!isSo()) {
        if (isEnded) throw new Error('the member has ended', { cause: await ended });
        const remainingMs = deadline - performance.now();
        if (remainingMs <= 0) throw new Error(`it did not come: ${namesOf(handled).join(', ')}; ${retries.join()}`);
        await changes.next(remainingMs);
      }
    },
    tell: () => changes.tell(),
    async leave() {
      leaving.abort();
      return ended;
    },
  };
}

export function namesOf(deliveries: readonly Delivery[]): string[] {
  return deliveries.map(({ object }) => object.metadata.name);
}
