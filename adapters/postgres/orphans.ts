/** Orphans in PostgreSQL; see sql/0014_orphan.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import type { Orphans } from '#core/ports/orphans.ts';
import type { ExternalObject } from '#core/reconcile/sweep.ts';

export function postgresOrphans(sql: Sql): Orphans {
  return {
    async note(
      controller: string,
      found: readonly ExternalObject[],
      graceMs: number,
    ): Promise<readonly ExternalObject[]> {
      return guarded(
        'orphans',
        () => sql<ExternalObject[]>`
        select class, external_id as id, owner_uid as "ownerUid" from plumbline.note_orphans(${controller},
          ${found.map((each) => each.class)}::text[], ${found.map(({ id }) => id)}::text[],
          ${found.map(({ ownerUid }) => ownerUid)}::text[]::uuid[], ${graceMs} * interval '1 millisecond')`,
      );
    },

    async isOrphan(controller: string, object: ExternalObject): Promise<boolean> {
      const [row] = await guarded(
        'orphans',
        () => sql<{ isOrphan: boolean }[]>`
        select plumbline.is_orphan(${controller}, ${object.class}, ${object.id}) as "isOrphan"`,
      );
      return row?.isOrphan ?? false;
    },

    async forget(controller: string, object: ExternalObject): Promise<void> {
      await guarded('orphans', () => sql`select plumbline.forget_orphan(${controller}, ${object.class}, ${object.id})`);
    },
  };
}
