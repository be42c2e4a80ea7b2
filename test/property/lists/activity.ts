/** What goes on while lists are read: writers of all kinds, and a publisher that is seldom there. */

import type { Sql } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import type { Random } from '#test/support/random.ts';
import { runRawWriter } from '#test/property/ordering/raw-writer.ts';
import { runStoreWriter } from '#test/property/ordering/store-writer.ts';
import { createLedger } from '#test/property/ordering/witness.ts';

export interface ActivityOptions {
  readonly databaseUrl: string;
  readonly sql: Sql;
  readonly tenants: readonly string[];
  readonly random: Random;
}

const KINDS = ['Widget', 'Widget', 'Widget', 'Vault'];
const MAX_BYTES = 1024 * 1024;
/** So rarely that a list gives up waiting. */
const LONG_PAUSE_SHARE = 0.004;

/** Resolves when the signal has aborted and all is committed; not all is published. */
export async function keepActive(options: ActivityOptions, signal: AbortSignal): Promise<void> {
  const { databaseUrl, sql, tenants, random } = options;
  const ledger = createLedger();
  const writers = KINDS.map((kind, index) =>
    runRawWriter({ databaseUrl, name: `writer-${index}`, tenants, kind, random: random.fork(), ledger }, signal),
  );
  const stored = runStoreWriter({ sql, tenants, random: random.fork(), ledger }, signal);
  await Promise.all([...writers, stored, publishNowAndThen(sql, random.fork(), signal)]);
}

/** A few records of one stream, or all of everything, and then nothing for a while. */
async function publishNowAndThen(sql: Sql, random: Random, signal: AbortSignal): Promise<void> {
  const outbox = postgresOutbox(sql);
  while (!signal.aborted) {
    const pending = await outbox.pendingStreams();
    if (pending.length === 0 || random.chance(0.3)) await publishOnce({ outbox });
    else await outbox.publishBatch(random.pick(pending), { maxCount: random.int(1, 40), maxBytes: MAX_BYTES });
    const pauseMs = random.chance(LONG_PAUSE_SHARE) ? 1_500 : random.int(0, 25);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
