/** The ring of cursor keys, shared through the database by all servers that work on it. */

import type { Sql } from '#adapters/postgres/client.ts';

export interface CursorKey {
  readonly id: number;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** All keys, in the order of their ids: the newest is the last. The first server of a database makes the first key; racing servers agree on one. */
export async function loadCursorKeys(
  sql: Sql,
  randomBytes: (length: number) => Uint8Array,
): Promise<readonly CursorKey[]> {
  await sql`insert into plumbline.cursor_key (id, key) select 0, ${Buffer.from(randomBytes(32))}::bytea
    where not exists (select from plumbline.cursor_key) on conflict (id) do nothing`;
  return sql<CursorKey[]>`select id, key from plumbline.cursor_key order by id`;
}
