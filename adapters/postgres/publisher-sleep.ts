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
  signal.addEventListener('abort', () => void locks.end({ timeout: 0 }).catch(() => undefined), { once: true });

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
    let asleep = false;
    let failure: unknown;
    const lock = connection`select pg_advisory_lock(hashtextextended('plumbline/publisher-sleeps', 0))`.then(
      () => {
        asleep = true;
        wake();
      },
      (error: unknown) => {
        failure = error;
        wake();
      },
    );
    try {
      // A writer that stays open keeps the lock from us, and every other writer notifies meanwhile.
      for (;;) {
        await waitFor(() => asleep || notified || failure !== undefined || signal.aborted);
        if (failure !== undefined || signal.aborted) return;
        notified = false;
        // When a drain fails, going back to the caller's loop reports it; the lock must come first, or it stays asked for.
        const drained = await drain().then(
          () => true,
          () => false,
        );
        if (!asleep) continue;
        if (drained) await waitFor(() => notified || signal.aborted);
        return;
      }
    } finally {
      if (!signal.aborted) {
        await lock;
        if (failure !== undefined) throw failure;
        await connection`select pg_advisory_unlock(hashtextextended('plumbline/publisher-sleeps', 0))`;
      }
    }
  }

  async function standBy(): Promise<void> {
    notified = false;
    await waitFor(() => notified || signal.aborted);
    if (!signal.aborted) await delay(STANDBY_DELAY_MS);
  }

  async function waitFor(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }
}

async function delay(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
