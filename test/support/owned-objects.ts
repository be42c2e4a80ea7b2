/** Objects that own each other, by raw SQL, and collectors of them. */

import type { Sql } from '#adapters/postgres/client.ts';
import { openConnection } from '#test/support/prepared-database.ts';

export type Policy = 'Background' | 'Foreground' | 'Orphan';

/** @returns its uid. */
export async function addObject(
  sql: Sql,
  name: string,
  {
    owners = [],
    finalizers = [],
  }: { readonly owners?: readonly string[]; readonly finalizers?: readonly string[] } = {},
): Promise<string> {
  const [row] = await sql<{ uid: string }[]>`
    insert into plumbline.resource (tenant, api_group, kind, name, finalizers, owner_references)
    select 'acme', 'example.dev', 'Widget', ${name}, ${[...finalizers]}::text[], ${referencesTo(sql, owners)}
    returning uid`;
  if (!row) throw new Error('nothing was inserted');
  return row.uid;
}

/** As blocking owners, in this order; those that are gone are left out. */
export async function setOwners(sql: Sql, name: string, owners: readonly string[]): Promise<void> {
  await sql`update plumbline.resource set owner_references = ${referencesTo(sql, owners)}
    where tenant = 'acme' and name = ${name}`;
}

function referencesTo(sql: Sql, owners: readonly string[]): ReturnType<Sql> {
  return sql`(select coalesce(jsonb_agg(jsonb_build_object('apiVersion', 'example.dev/v1', 'kind', o.kind, 'name', o.name,
      'uid', o.uid, 'blockOwnerDeletion', true) order by array_position(${[...owners]}::text[], o.name)), '[]')
    from plumbline.resource o where o.tenant = 'acme' and o.name = any (${[...owners]}::text[]))`;
}

/** As DELETE does. */
export async function remove(sql: Sql, name: string, policy: Policy): Promise<void> {
  await sql`
    with target as (
      select uid, plumbline.propagation_finalizers(finalizers, ${policy}) as wanted from plumbline.resource
      where tenant = 'acme' and name = ${name} for update
    ), gone as (
      delete from plumbline.resource r using target t where r.uid = t.uid and r.finalizers = '{}' and t.wanted = '{}'
    )
    update plumbline.resource r set deletion_timestamp = clock_timestamp(), finalizers = t.wanted
      from target t where r.uid = t.uid and not (r.finalizers = '{}' and t.wanted = '{}')`;
}

export async function collectUntilQuiet(sql: Sql): Promise<void> {
  for (;;) {
    const [row] = await sql<{ handled: number; left: number }[]>`
      select plumbline.collect(50) as handled, (select count(*) from plumbline.owner_change)::integer as left`;
    const [after] = await sql<{ left: number }[]>`select count(*)::integer as left from plumbline.owner_change`;
    if (row?.handled === 0 && after?.left === 0) return;
  }
}

/** Names of what is there, with the names that its references say. */
export async function ownersByName(sql: Sql): Promise<Record<string, string[]>> {
  const rows = await sql<{ name: string; owners: string[] }[]>`
    select name, array(select o ->> 'name' from jsonb_array_elements(owner_references) o order by 1) as owners
    from plumbline.resource where tenant = 'acme' order by name`;
  return Object.fromEntries(rows.map(({ name, owners }) => [name, owners]));
}

export interface Collector {
  /** Ends its connection as a crash does, in the middle of whatever it does. */
  kill(): Promise<void>;
  /** Resolves when its last round is over. */
  stop(): Promise<void>;
}

/** Collects again and again on a connection of its own, a few objects at a time. */
export function startCollector(url: string, admin: Sql, onError: (error: unknown) => void): Collector {
  const connection = openConnection(url, 'collector');
  let isStopped = false;
  const pid = connection<{ pid: number }[]>`select pg_backend_pid() as pid`.then(([row]) => row?.pid ?? 0);
  const running = run();
  return {
    async kill() {
      isStopped = true;
      await admin`select pg_terminate_backend(${await pid})`;
      await running;
      await connection.end({ timeout: 1 });
    },
    async stop() {
      isStopped = true;
      await running;
      await connection.end({ timeout: 5 });
    },
  };

  async function run(): Promise<void> {
    await pid;
    while (!isStopped) {
      await connection`select plumbline.collect(3)`.catch((error: unknown) => {
        if (!isStopped) onError(error);
      });
    }
  }
}
