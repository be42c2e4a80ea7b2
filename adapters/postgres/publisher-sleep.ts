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

import { connect, type Connection, type Sql } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import type { PublisherSleep } from '#core/ports/outbox.ts';

const FLOOR_MS = 1_000;
const STANDBY_DELAY_MS = 100;

export interface PublisherSleepOptions {
  /** Where session locks and LISTEN work: PostgreSQL itself, not a transaction pooler. */
  readonly databaseUrl: string;
  /** For LISTEN. */
  readonly sql: Sql;
  readonly signal: AbortSignal;
}

/** Opens a connection of its own for the locks, and ends it when the signal aborts. */
export function postgresPublisherSleep({ databaseUrl, sql, signal }: PublisherSleepOptions): PublisherSleep {
  const locks = connect(databaseUrl, {
    applicationName: 'plumbline publisher sleep',
    maxConnections: 1,
    role: 'plumbline_server',
  });

  // Latched: a notification that comes while nobody waits ends the next wait at once.
  let notified = false;
  let wake = (): void => undefined;
  onNotification(
    sql,
    { channel: 'plumbline_outbox', floorMs: FLOOR_MS },
    () => {
      notified = true;
      wake();
    },
    signal,
  );
  signal.addEventListener(
    'abort',
    () => {
      wake();
      void locks.end({ timeout: 0 }).catch(() => undefined);
    },
    { once: true },
  );
  // The lock connection of this session, while it has the active lock.
  let active: Connection | undefined;

  return { sleep };

  async function sleep(drain: () => Promise<void>): Promise<void> {
    try {
      active ??= await becomeActive();
      await (active ? sleepActively(active, drain) : standBy());
    } catch {
      // The lock connection broke, and its locks are gone with it.
      active?.release();
      active = undefined;
      await delay(STANDBY_DELAY_MS);
    }
  }

  async function becomeActive(): Promise<Connection | undefined> {
    const connection = await locks.reserve();
    try {
      const [row] = await connection<{ got: boolean }[]>`
        select pg_try_advisory_lock(hashtextextended('plumbline/active-publisher', 0)) as got`;
      if (row?.got) return connection;
    } catch (error) {
      connection.release();
      throw error;
    }
    connection.release();
    return undefined;
  }

  async function sleepActively(connection: Connection, drain: () => Promise<void>): Promise<void> {
    notified = false;
    const lock: { state: 'asked for' | 'held' | 'failed' } = { state: 'asked for' };
    connection`select pg_advisory_lock(hashtextextended('plumbline/publisher-sleeps', 0))`.then(
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
      await connection`select pg_advisory_unlock(hashtextextended('plumbline/publisher-sleeps', 0))`;
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

const succeeded = (): boolean => true;
const failed = (): boolean => false;

async function delay(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
