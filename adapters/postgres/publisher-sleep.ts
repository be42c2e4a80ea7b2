/**
 * How a resident publisher sleeps: writers notify only while it does. It holds an advisory lock exclusively when asleep;
 * each writer tries the same lock shared, and notifies when the try fails. Taking the lock waits for writers in flight
 * that did not notify; one more drain then sees what they wrote. So no wake-up is lost, and while the publisher is awake
 * no writer pays for NOTIFY.
 *
 * Of several resident publishers only one at a time, the one with the active lock, may sleep so: otherwise the sleep of
 * one would make writers notify while another is awake. The others stand by: they look when notified, a little later,
 * and at the floor, so that a frozen active publisher delays events by a moment and never stops them.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import { openSession, type Session } from '#adapters/postgres/session.ts';
import type { PublisherSleep } from '#core/ports/outbox.ts';

const FLOOR_MS = 1_000;
const STANDBY_DELAY_MS = 100;
/** For statements on the session that wait for nobody: a server that does not answer them is away. */
const ANSWER_TIMEOUT_MS = 5_000;

export interface PublisherSleepOptions {
  /** Where session locks and LISTEN work: PostgreSQL itself, not a transaction pooler. */
  readonly databaseUrl: string;
  /** For LISTEN. */
  readonly sql: Sql;
  readonly signal: AbortSignal;
}

/** Has a session of its own for the locks, and ends it when the signal aborts. */
export function postgresPublisherSleep({ databaseUrl, sql, signal }: PublisherSleepOptions): PublisherSleep {
  // Latched: a notification that comes while nobody waits ends the next wait at once.
  let notified = false;
  let wake = (): void => undefined;
  onNotification(sql, { channel: 'plumbline_outbox', floorMs: FLOOR_MS }, lookAgain, signal);
  signal.addEventListener(
    'abort',
    () => {
      wake();
      void session?.close().catch(() => undefined);
    },
    { once: true },
  );
  // It holds the locks: they go when it goes.
  let session: Session | undefined;
  let isActive = false;

  return { sleep };

  function lookAgain(): void {
    notified = true;
    wake();
  }

  async function sleep(drain: () => Promise<void>): Promise<void> {
    try {
      session ??= openSession(databaseUrl, {
        applicationName: 'plumbline publisher sleep',
        role: 'plumbline_server',
        onLost: lookAgain,
      });
      isActive ||= await becomeActive(session);
      await (isActive ? sleepActively(session, drain) : standBy());
    } catch {
      await session?.close().catch(() => undefined);
      session = undefined;
      isActive = false;
      if (!signal.aborted) await delay(STANDBY_DELAY_MS);
    }
  }

  async function becomeActive({ sql: locks }: Session): Promise<boolean> {
    const [row] = await answered(locks<{ got: boolean }[]>`
      select pg_try_advisory_lock(hashtextextended('plumbline/active-publisher', 0)) as got`);
    return row?.got ?? false;
  }

  async function sleepActively({ sql: locks }: Session, drain: () => Promise<void>): Promise<void> {
    notified = false;
    const lock: { state: 'asked for' | 'held' | 'failed' } = { state: 'asked for' };
    locks`select pg_advisory_lock(hashtextextended('plumbline/publisher-sleeps', 0))`.then(
      () => settle('held'),
      () => settle('failed'),
    );
    function settle(state: 'held' | 'failed'): void {
      lock.state = state;
      wake();
    }

    for (let drainedUnderLock = false; !drainedUnderLock;) {
      // A writer that stays open keeps the lock from us, and every other writer notifies meanwhile.
      await waitFor(() => notified || lock.state !== 'asked for');
      if (signal.aborted) return;
      if (lock.state === 'failed') throw new Error('the connection of the publisher lock broke');
      notified = false;
      const isLast = lock.state === 'held';
      // A drain that failed is made again, and reported, by the caller's loop.
      const drained = await drain().then(succeeded, failed);
      if (isLast && !drained) notified = true;
      drainedUnderLock = isLast;
    }
    await waitFor(() => notified);
    if (!signal.aborted) {
      await answered(locks`select pg_advisory_unlock(hashtextextended('plumbline/publisher-sleeps', 0))`);
    }
  }

  async function standBy(): Promise<void> {
    notified = false;
    await waitFor(() => notified);
    if (!signal.aborted) await delay(STANDBY_DELAY_MS);
  }

  async function waitFor(condition: () => boolean): Promise<void> {
    while (!condition() && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
  }
}

/** The statement's answer. @throws when there is none in time: whatever holds the connection up, it is of no use. */
async function answered<T>(statement: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`)), ANSWER_TIMEOUT_MS);
  });
  try {
    return await Promise.race([statement, late]);
  } finally {
    clearTimeout(timer);
  }
}

const succeeded = (): boolean => true;
const failed = (): boolean => false;

async function delay(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
