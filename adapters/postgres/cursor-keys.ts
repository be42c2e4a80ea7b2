/** The ring of cursor keys in the database, shared by all servers that work on it. */

import type { Sql } from '#adapters/postgres/client.ts';
import {
  type CursorKey,
  type CursorKeyAdmin,
  type CursorKeyRing,
  type CursorKeys,
  type CursorKeyState,
  MAX_KEY_SPAN,
  RENEWAL_GAP,
  RETIRE_AFTER_MS,
  type Retirement,
} from '#core/ports/cursor-keys.ts';

type RandomBytes = (length: number) => Uint8Array;

/** The first server of a database, or of a copy of one, makes its first key; racing servers agree on one. */
export function postgresCursorKeys(sql: Sql, randomBytes: RandomBytes): CursorKeys {
  return {
    async read(): Promise<CursorKeyRing> {
      const found = await select();
      if (found.length > 0) return ringOf(found);
      await sql`insert into plumbline.cursor_key (id, key)
        select coalesce(max(id) + ${RENEWAL_GAP}, 0), ${Buffer.from(randomBytes(32))}::bytea from plumbline.cursor_key
        having count(*) filter (where database_identity = plumbline.database_identity()) = 0 on conflict (id) do nothing`;
      return ringOf(await select());
    },
  };

  function select(): Promise<readonly (CursorKey & { readonly seals: boolean })[]> {
    return sql<(CursorKey & { seals: boolean })[]>`
      select id, key, seals_from <= clock_timestamp() as seals from plumbline.cursor_key
      where database_identity = plumbline.database_identity() order by id`;
  }
}

function ringOf(rows: readonly (CursorKey & { readonly seals: boolean })[]): CursorKeyRing {
  const sealing = rows.findLast(({ seals }) => seals) ?? rows[0];
  if (!sealing) throw new Error('plumbline.cursor_key is empty');
  return { keys: rows.map(({ id, key }) => ({ id, key })), sealingId: sealing.id };
}

/** Needs more rights than servers have. @param sql of a session. */
export function postgresCursorKeyAdmin(sql: Sql, randomBytes: RandomBytes): CursorKeyAdmin {
  return { list, rotate, retire, renew };

  async function list(): Promise<readonly CursorKeyState[]> {
    return sql<CursorKeyState[]>`
      select id, seals_from as "sealsFrom" from plumbline.cursor_key
      where database_identity = plumbline.database_identity() order by id`;
  }

  async function rotate(leadMs: number): Promise<CursorKeyState | undefined> {
    const [added] = await sql<CursorKeyState[]>`
      insert into plumbline.cursor_key (id, key, seals_from)
      select coalesce(max(id) + 1, 0), ${Buffer.from(randomBytes(32))}::bytea,
        clock_timestamp() + case when min(own) is null then 0 else ${leadMs}::float8 end * interval '1 ms'
      from (select id, case when database_identity = plumbline.database_identity() then id end as own
        from plumbline.cursor_key) known
      having coalesce(max(id) - min(own), 0) < ${MAX_KEY_SPAN - 1}
      on conflict (id) do nothing
      returning id, seals_from as "sealsFrom"`;
    return added;
  }

  async function retire(id: number): Promise<Retirement> {
    const [row] = await sql<{ retired: boolean; known: boolean }[]>`
      with gone as (
        delete from plumbline.cursor_key where id = ${id} and exists (
          select from plumbline.cursor_key newer
          where newer.id > ${id} and newer.seals_from <= clock_timestamp() - ${RETIRE_AFTER_MS} * interval '1 ms')
        returning id)
      select exists (select from gone) as retired,
        exists (select from plumbline.cursor_key where id = ${id}) as known`;
    if (row?.retired) return 'retired';
    return row?.known ? 'in use' : 'unknown';
  }

  async function renew(): Promise<CursorKeyState> {
    const [added] = await sql.begin(async (transaction) => {
      // What is added meanwhile would stay; two renewals that meet would both begin behind the same keys.
      await transaction`lock table plumbline.cursor_key in share row exclusive mode`;
      return transaction<CursorKeyState[]>`
        with gone as (delete from plumbline.cursor_key returning id)
        insert into plumbline.cursor_key (id, key)
        select coalesce(max(id) + ${RENEWAL_GAP}, 0), ${Buffer.from(randomBytes(32))}::bytea from gone
        returning id, seals_from as "sealsFrom"`;
    });
    if (!added) throw new Error('the new key was not stored');
    return added;
  }
}
