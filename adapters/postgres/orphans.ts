/** Orphans in PostgreSQL; see sql/0014_orphan.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import type { Orphans } from '#core/ports/orphans.ts';
import type { ExternalObject } from '#core/reconcile/sweep.ts';

export function postgresOrphans(sql: Sql): Orphans {
  return {
    async keepParts(controller, parts) {
      await guarded('orphans', () => sql`select plumbline.keep_orphan_parts(${controller}, ${[...parts]}::text[])`);
    },

    async note({ controller, part }, found, graceMs) {
      return guarded(
        'orphans',
        () => sql<ExternalObject[]>`
        select class, external_id as id, owner_uid as "ownerUid" from plumbline.note_orphans(${controller}, ${part},
          ${found.map((each) => each.class)}::text[], ${found.map(({ id }) => id)}::text[],
          ${found.map(({ ownerUid }) => ownerUid)}::text[]::uuid[], ${graceMs} * interval '1 millisecond')`,
      );
    },

    async isOrphan({ controller, part }, object) {
      const [row] = await guarded(
        'orphans',
        () => sql<{ isOrphan: boolean }[]>`
        select plumbline.is_orphan(${controller}, ${part}, ${object.class}, ${object.id}) as "isOrphan"`,
      );
      return row?.isOrphan ?? false;
    },

    async forget({ controller, part }, object) {
      await guarded(
        'orphans',
        () => sql`select plumbline.forget_orphan(${controller}, ${part}, ${object.class}, ${object.id})`,
      );
    },
  };
}
