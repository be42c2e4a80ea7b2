/**
 * How a resident loop, publisher or reconciler, sleeps: writers notify only while it does. It holds an advisory lock
 * exclusively when asleep; each writer tries the same lock shared, and notifies when the try fails. Taking the lock waits
 * for writers in flight that did not notify; one more drain then sees what they wrote. So no wake-up is lost, and while the
 * loop is awake no writer pays for NOTIFY.
 *
 * Of several loops of one role only one at a time, the one with the active lock, may sleep so: otherwise the sleep of one
 * would make writers notify while another is awake. The others stand by: they look when notified, a little later, and at
 * the floor, so that a frozen active one delays work by a moment and never stops it.
 */

import postgres from 'postgres';
import type { Sql } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import { openSession, type Session } from '#adapters/postgres/session.ts';
import type { WriterSleep } from '#core/ports/writer-sleep.ts';

const FLOOR_MS = 1_000;
const STANDBY_DELAY_MS = 100;
/**
 * How long the lock is asked for: while it is, every writer notifies. Enough for writers of one statement; twice as long
 * each time that a writer stayed open for longer, so that one who does so for minutes costs little.
 */
const SHORTEST_ASK_MS = 10;
const LONGEST_ASK_MS = 640;
/** For statements on the session that wait for nobody: a server that does not answer them is away. */
const ANSWER_TIMEOUT_MS = 5_000;

/** What writers wake, and by which channel; see wake_publishers and wake_reconcilers in `sql`. */
const CHANNELS = { publisher: 'plumbline_outbox', reconciler: 'plumbline_work' } as const;

export interface WriterSleepOptions {
  readonly role: keyof typeof CHANNELS;
  /** Where session locks and LISTEN work: PostgreSQL itself, not a transaction pooler. */
  readonly databaseUrl: string;
  /** For LISTEN. */
  readonly sql: Sql;
  readonly signal: AbortSignal;
}

/** Has a session of its own for the locks, and ends it when the signal aborts. */
export function postgresWriterSleep({ role, databaseUrl, sql, signal }: WriterSleepOptions): WriterSleep {
  const sleepLock = `plumbline/${role}-sleeps`;
  const activeLock = `plumbline/active-${role}`;
  // Latched: a notification that comes while nobody waits ends the next wait at once.
  let notified = false;
  // By the process itself: no other knows of that work.
  let isCalled = false;
  let wake = (): void => undefined;
  // Ends the drain in flight, when there is no use in going on with it.
  let interrupt = (): void => undefined;
  let askMs = SHORTEST_ASK_MS;
  onNotification(sql, { channel: CHANNELS[role], floorMs: FLOOR_MS }, lookAgain, signal);
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

  return { sleep, wake: call };

  function call(): void {
    isCalled = true;
    lookAgain();
  }

  function lookAgain(): void {
    notified = true;
    look();
  }

  function look(): void {
    interrupt();
    wake();
  }

  async function sleep(drain: Drain): Promise<void> {
    // A session that is opened now would never be closed.
    if (signal.aborted) return;
    try {
      session ??= openSession(databaseUrl, {
        applicationName: `plumbline ${role} sleep`,
        role: 'plumbline_worker',
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
      select pg_try_advisory_lock(hashtextextended(${activeLock}, 0)) as got`);
    return row?.got ?? false;
  }

  /** Under the lock for as short as can be: as soon as one writer notifies, there is no need that the next does. */
  async function sleepActively({ sql: locks }: Session, drain: Drain): Promise<void> {
    notified = false;
    let wasNotified = false;
    const lock = askForLock(locks);
    const askedAtMs = performance.now();
    while (lock.state === 'asked for') {
      // A writer that stays open keeps the lock from us. Those that come now notify; those that were in flight when we
      // asked do not: we look again after as long as we have waited, so none of them waits longer than it took.
      await waitFor(() => notified || lock.state !== 'asked for', Math.max(1, performance.now() - askedAtMs));
      if (signal.aborted) return;
      if (lock.state !== 'asked for') break;
      wasNotified ||= notified;
      notified = false;
      await drainUntil(drain, () => lock.state !== 'asked for');
    }
    if (lock.state === 'failed') throw new Error('the connection of the sleep lock broke');
    askMs = lock.state === 'late' && !notified && !wasNotified ? Math.min(askMs * 2, LONGEST_ASK_MS) : SHORTEST_ASK_MS;
    if (lock.state === 'held') {
      if (!notified) await drainUntil(drain, () => notified);
      await waitFor(() => notified);
    }
    if (!signal.aborted) await release(locks);
  }

  /**
   * Also when the lock was late: one that is granted at the moment of the timeout stays with the session, in spite of the
   * error (LockErrorCleanup in PostgreSQL's proc.c; seen in 4 % of timeouts that were that close). Unlocking what is not
   * held would fill the server's log with warnings; beside this lock the session has the active one.
   */
  async function release(locks: Sql): Promise<void> {
    await answered(locks`select pg_advisory_unlock(hashtextextended(${sleepLock}, 0))
      where (select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and granted) > 1`);
  }

  function askForLock(locks: Sql): { state: 'asked for' | 'held' | 'late' | 'failed' } {
    const lock: ReturnType<typeof askForLock> = { state: 'asked for' };
    locks.unsafe(`set lock_timeout = ${askMs}; select pg_advisory_lock(hashtextextended('${sleepLock}', 0))`).then(
      () => settle('held'),
      (error: unknown) => settle(isLockTimeout(error) ? 'late' : 'failed'),
    );
    return lock;

    function settle(state: typeof lock.state): void {
      lock.state = state;
      look();
    }
  }

  /** A drain that fails ends the sleep: it is made again, and reported, by the caller's loop. */
  async function drainUntil(drain: Drain, isEnough: () => boolean): Promise<void> {
    const enough = new AbortController();
    interrupt = () => {
      if (isEnough()) enough.abort();
    };
    interrupt();
    try {
      await drain(enough.signal);
    } finally {
      interrupt = () => undefined;
    }
  }

  async function standBy(): Promise<void> {
    notified = false;
    await waitFor(() => notified || isCalled);
    if (!signal.aborted && !isCalled) await delay(STANDBY_DELAY_MS);
    isCalled = false;
  }

  async function waitFor(condition: () => boolean, atMostMs: number = Infinity): Promise<void> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
      wake();
    };
    const timer = atMostMs === Infinity ? undefined : setTimeout(end, atMostMs);
    while (!condition() && !isOver && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
    clearTimeout(timer);
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

type Drain = Parameters<WriterSleep['sleep']>[0];

function isLockTimeout(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '55P03';
}

async function delay(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
