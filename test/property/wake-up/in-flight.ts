/** Writers that are in flight, and have not notified, when a publisher that was busy wants to sleep. */

import postgres from 'postgres';
import { vi } from 'vitest';

export interface InFlightOptions {
  readonly databaseUrl: string;
  /** Of tenants that nobody else writes in. */
  readonly tenants: { readonly busy: string; readonly short: string; readonly long: string };
}

/** How long the shorter of two writers waits for its event, while the longer one stays open. Milliseconds. */
export async function waitBehindOpenWriter({ databaseUrl, tenants }: InFlightOptions): Promise<number> {
  const sql = postgres(databaseUrl, { max: 4, onnotice: () => undefined });
  const [blocker, short, long] = [await sql.reserve(), await sql.reserve(), await sql.reserve()];
  try {
    // Awake, until the blocker lets it go on.
    await blocker`begin`;
    await blocker`select from plumbline.frontier f join plumbline.stream s on s.id = f.stream
      where s.tenant = ${tenants.busy} for update of f`;
    await write(sql, tenants.busy);
    await untilWaiting('plumbline test publisher');
    for (const [connection, tenant] of [
      [short, tenants.short],
      [long, tenants.long],
    ] as const) {
      await connection`begin`;
      await write(connection, tenant);
    }
    await blocker`rollback`;
    await untilWaiting('plumbline publisher sleep');
    await short`commit`;
    const startMs = performance.now();
    await untilPublished(tenants.short);
    return performance.now() - startMs;
  } finally {
    await long`rollback`;
    for (const connection of [blocker, short, long]) connection.release();
    await sql.end({ timeout: 1 });
  }

  async function untilWaiting(applicationName: string): Promise<void> {
    await vi.waitFor(
      async () => {
        const waiting = await sql`select from pg_stat_activity where datname = current_database()
          and application_name = ${applicationName} and wait_event_type = 'Lock'`;
        if (waiting.length === 0) throw new Error(`${applicationName} waits for no lock`);
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

async function write(sql: postgres.Sql, tenant: string): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    values (${tenant}, 'example.dev', 'Widget', ${`in-flight-${crypto.randomUUID()}`})`;
}
