/** Writers that are in flight, and have not notified, when a publisher that was busy wants to sleep. */

import { vi } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { untilLockWaits } from '#test/support/lock-waits.ts';
import { openConnection } from '#test/support/prepared-database.ts';

export interface InFlightOptions {
  readonly databaseUrl: string;
  /** Of tenants that nobody else writes in. */
  readonly tenants: { readonly busy: string; readonly short: string; readonly long: string };
}

/** How long the shorter of two writers waits for its event, while the longer one stays open. Milliseconds. */
export async function waitBehindOpenWriter({ databaseUrl, tenants }: InFlightOptions): Promise<number> {
  const connections = [1, 2, 3, 4].map(() => openConnection(databaseUrl)) as [Sql, Sql, Sql, Sql];
  const [sql, blocker, short, long] = connections;
  try {
    await untilAsleep();
    // Awake, until the blocker lets it go on.
    await blocker`begin`;
    await blocker`select from plumbline.frontier f join plumbline.stream s on s.id = f.stream
      where s.tenant = ${tenants.busy} for update of f`;
    await write(sql, tenants.busy);
    await untilLockWaits(sql, 'plumbline test publisher');
    for (const [connection, tenant] of [
      [short, tenants.short],
      [long, tenants.long],
    ] as const) {
      await connection`begin`;
      await write(connection, tenant);
    }
    await blocker`rollback`;
    await untilLockWaits(sql, 'plumbline publisher sleep');
    await short`commit`;
    const startMs = performance.now();
    await untilPublished(tenants.short);
    return performance.now() - startMs;
  } finally {
    await long`rollback`;
    await Promise.all(connections.map((connection) => connection.end({ timeout: 1 })));
  }

  /** It holds its lock, and has not done anything for a while. */
  async function untilAsleep(): Promise<void> {
    await vi.waitFor(
      async () => {
        const busy = await sql`select from pg_stat_activity a where datname = current_database()
          and application_name like 'plumbline%publisher%'
          and (state <> 'idle' or state_change > clock_timestamp() - interval '30 ms')`;
        const locks = await sql`select from pg_locks l join pg_stat_activity a using (pid)
          where a.datname = current_database() and a.application_name = 'plumbline publisher sleep'
            and l.locktype = 'advisory' and l.granted`;
        // The active publisher's, and that of its sleep.
        if (busy.length > 0 || locks.length < 2) throw new Error('the publisher is awake');
      },
      { timeout: 5_000, interval: 1 },
    );
  }

  async function untilPublished(tenant: string): Promise<void> {
    await vi.waitFor(
      async () => {
        const left = await sql`select from plumbline.outbox where tenant = ${tenant}`;
        if (left.length > 0) throw new Error('not published');
      },
      { timeout: 5_000, interval: 1 },
    );
  }
}

async function write(sql: Sql, tenant: string): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    values (${tenant}, 'example.dev', 'Widget', ${`in-flight-${crypto.randomUUID()}`})`;
}
