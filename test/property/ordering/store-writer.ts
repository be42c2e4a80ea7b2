/** Writes through the store, as the API does: each call is one statement and its own transaction. */

import { postgresResources } from '#adapters/postgres/resources.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import type { ResourceStore } from '#core/ports/resources.ts';
import type { ResourceKey, ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';
import type { Random } from '#test/support/random.ts';
import type { Ledger } from '#test/property/ordering/witness.ts';

export interface StoreWriterOptions {
  readonly sql: Sql;
  readonly tenants: readonly string[];
  readonly random: Random;
  readonly ledger: Ledger;
}

/** Objects per tenant that these writers share. */
const NAMES = 8;
const ALL = { tenants: '*' } as const;

/** Writes until told to stop. */
export async function runStoreWriter(options: StoreWriterOptions, signal: AbortSignal): Promise<void> {
  const { tenants, random, ledger } = options;
  const store = postgresResources(options.sql);
  while (!signal.aborted) {
    const name = `stored-${random.int(0, NAMES - 1)}`;
    const transaction = ledger.begin();
    try {
      const row = await write(
        store,
        { tenant: random.pick(tenants), group: 'example.dev', kind: 'Widget', name },
        random,
      );
      if (row) ledger.acknowledgeVersion(transaction, row.resourceVersion);
    } catch (error) {
      // Another writer was faster.
      if (!(error instanceof StatusError) || error.code >= 500) throw error;
    }
  }
}

/** The row in the version that the call made; undefined when it may have made none. */
async function write(store: ResourceStore, key: ResourceKey, random: Random): Promise<ResourceRow | undefined> {
  const found = await store.get(ALL, key);
  const desired = {
    finalizers: [],
    labels: JSON.stringify({ colour: random.pick(['red', 'blue']) }),
    annotations: '{}',
    ownerReferences: '[]',
    spec: JSON.stringify({ size: random.int(0, 1000) }),
  };
  if (!found) return store.create(ALL, { ...key, ...desired });
  if (random.chance(0.1)) {
    await store.delete(ALL, key, {});
    return undefined;
  }
  const preconditions = random.chance(0.5) ? { resourceVersion: found.resourceVersion } : {};
  const written = random.chance(0.3)
    ? await store.updateStatus(ALL, key, JSON.stringify({ seen: random.int(0, 99) }), preconditions)
    : await store.update(ALL, key, desired, preconditions);
  return written.resourceVersion === found.resourceVersion ? undefined : written;
}
