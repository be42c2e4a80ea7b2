/** Leases in PostgreSQL: one row per key, its token rising with every acquisition. Time is the database's. */

import { type Sql, guarded } from '#adapters/postgres/client.ts';
import type { Lease, Leases } from '#core/ports/leases.ts';

/** @param holder names this process among all that contend. */
export function postgresLeases(sql: Sql, holder: string): Leases {
  return {
    async acquire(key: string, durationMs: number): Promise<Lease | undefined> {
      const [row] = await guarded(
        'lease',
        () => sql<{ token: bigint | null }[]>`
        select plumbline.acquire_lease(${key}, ${holder}, ${durationMs} * interval '1 millisecond') as token`,
      );
      return row?.token == null ? undefined : { key, fencingToken: row.token };
    },

    async renew({ key, fencingToken }: Lease, durationMs: number): Promise<boolean> {
      const [row] = await guarded(
        'lease',
        () => sql<{ held: boolean }[]>`
        select plumbline.renew_lease(${key}, ${String(fencingToken)}::bigint, ${durationMs} * interval '1 millisecond') as held`,
      );
      return row?.held ?? false;
    },

    async release({ key, fencingToken }: Lease): Promise<void> {
      await guarded('lease', () => sql`select plumbline.release_lease(${key}, ${String(fencingToken)}::bigint)`);
    },
  };
}
