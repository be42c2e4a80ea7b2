/** Single writes with nothing else going on, one at a time per connection: each must wake the publisher by itself. */

import postgres from 'postgres';
import type { Random } from '#test/support/random.ts';

export interface LoneWriterOptions {
  readonly databaseUrl: string;
  readonly tenant: string;
  readonly count: number;
  /** Pauses after a publication, when the publisher is about to fall asleep: uniform from 0 to this. */
  readonly longestPauseMs: number;
  readonly random: Random;
}

/** A write that was not published after so long is left to be judged; the next one goes on. */
const PATIENCE_MS = 2_000;

/** Each write waits until the one before is published, and then for a moment of the publisher falling asleep. */
export async function writeAlone({
  databaseUrl,
  tenant,
  count,
  longestPauseMs,
  random,
}: LoneWriterOptions): Promise<void> {
  const sql = postgres(databaseUrl, { max: 2, onnotice: () => undefined });
  let published = (): void => undefined;
  try {
    await sql.listen('plumbline_event_log', () => published());
    for (let index = 0; index < count; index += 1) {
      const isPublished = new Promise<void>((resolve) => (published = resolve));
      await sql`insert into plumbline.resource (tenant, api_group, kind, name)
        values (${tenant}, 'example.dev', 'Widget', ${`alone-${index}`})`;
      await within(isPublished, PATIENCE_MS);
      await pause(random.next() * longestPauseMs);
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Transactions that stay open for more than a second, one after the other, each with a write at its start. */
export async function holdTransactionsOpen(
  databaseUrl: string,
  tenant: string,
  random: Random,
  signal: AbortSignal,
): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  try {
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, random.int(100, 1_500)));
      await sql.begin(async (transaction) => {
        await transaction`insert into plumbline.resource (tenant, api_group, kind, name)
          values (${tenant}, 'example.dev', 'Widget', ${`held-${random.int(0, 2 ** 30)}`})`;
        await transaction`select pg_sleep(${random.int(1_050, 1_600) / 1_000})`;
      });
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

export interface CrowdOptions {
  readonly databaseUrl: string;
  readonly tenant: string;
  readonly writers: number;
  readonly durationMs: number;
}

/** As fast as each of the writers can. Returns the number of writes. */
export async function writeTogether({ databaseUrl, tenant, writers, durationMs }: CrowdOptions): Promise<number> {
  const sql = postgres(databaseUrl, { max: writers, onnotice: () => undefined });
  const until = performance.now() + durationMs;
  let writes = 0;
  await Promise.all(Array.from({ length: writers }, write));
  await sql.end({ timeout: 1 });
  return writes;

  async function write(_value: unknown, writer: number): Promise<void> {
    for (let index = 0; performance.now() < until; index += 1) {
      await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
        values (${tenant}, 'example.dev', 'Widget', ${`crowd-${writer}-${index % 50}`}, jsonb_build_object('size', ${index}::int))
        on conflict (api_group, kind, tenant, name) do update set spec = excluded.spec`;
      writes += 1;
    }
  }
}

/** Finer than timers, whose least is 1 ms. */
async function pause(milliseconds: number): Promise<void> {
  const until = performance.now() + milliseconds;
  while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
}

async function within(promise: Promise<void>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([promise, new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)))]);
  clearTimeout(timer);
}
