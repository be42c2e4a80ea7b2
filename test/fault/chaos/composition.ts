/** What a driver of the chaos run serves: the shipped kinds, with a real server under them, and the kind with the trail. */

import type { Sql } from '#adapters/postgres/client.ts';
import type { Kind } from '#core/kind.ts';
import { type Config, readConfig } from '#infra/_shared/settings/config.ts';
import { shippedKinds } from '#infra/_shared/kinds/shipped-kinds.ts';
import { entryKind } from '#test/fault/chaos/entry-kind.ts';
import type { Trail } from '#test/fault/chaos/trail.ts';

/** So short that whoever is frozen loses it. */
export const LEASE_MS = 3_000;
const CONCURRENCY = 8;
/** So short that what was changed by hand is seen within the run. */
const RESYNC_MS = 8_000;

export interface Addresses {
  /** Plumbline's database. */
  readonly databaseUrl: string;
  /** Of the login that manages databases, to a maintenance database. */
  readonly serverUrl: string;
  /** Of the database with the trail. */
  readonly trailUrl: string;
}

export function chaosConfig({ databaseUrl, serverUrl }: Addresses): Config {
  const variables = {
    DATABASE_URL: databaseUrl,
    DATABASE_SERVERS: `local=${serverUrl}`,
    RECONCILE_CONCURRENCY: String(CONCURRENCY),
  };
  return readConfig(variables, { isTerminal: false });
}

/** @param holder names the process in the trail. */
export function chaosKinds(addresses: Addresses, sql: Sql, trail: Trail, holder: string): readonly Kind[] {
  const config = chaosConfig(addresses);
  const shipped = shippedKinds({ config, databaseUrl: addresses.databaseUrl, sql, topicAdmin: undefined });
  return [...shipped, entryKind(trail, holder)].map((kind) => ({
    ...kind,
    controllers: kind.controllers.map((controller) => ({ ...controller, resyncMs: RESYNC_MS })),
  }));
}
