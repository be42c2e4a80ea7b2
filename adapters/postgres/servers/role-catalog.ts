/** Roles as the catalogs have them, and the statements that depend on what is there. */

import type { Sql } from '#adapters/postgres/client.ts';
import { checkedName, quoteName } from '#adapters/postgres/servers/quote.ts';
import { isVerifierOf } from '#adapters/postgres/servers/scram.ts';
import type { ExternalRole, RoleAttribute } from '#core/ports/database-servers.ts';

interface RoleRow extends Omit<ExternalRole, 'surplus' | 'hasPassword'> {
  readonly attributes: Readonly<Record<RoleAttribute, boolean>>;
  readonly maySeePassword: boolean;
}

/** From this version on a membership is one for each who granted it, and is taken from that one. */
const GRANTORS_SINCE = 160_000;

// Nobody can take a setting who could not make it; what is not known is a setting of an extension.
const OWN_SETTINGS = `
  select s.setdatabase from pg_db_role_setting s, unnest(s.setconfig) entry
    left join pg_settings known on known.name = split_part(entry, '=', 1)
  where s.setrole = r.oid and (known.context = 'user' or has_parameter_privilege(split_part(entry, '=', 1), 'SET'))`;

export async function readRole(sql: Sql, name: string, password?: string): Promise<ExternalRole | undefined> {
  const [row] = await sql<RoleRow[]>`
    select shobj_description(oid, 'pg_authid') as comment, rolcanlogin as "canLogIn",
      rolconnlimit <> -1 or coalesce(rolvaliduntil <> 'infinity', false) as "isLimited",
      exists (${sql.unsafe(OWN_SETTINGS)}) as "hasSettings",
      array(select distinct pg_get_userbyid(roleid) from pg_auth_members where member = r.oid order by 1)::text[] as groups,
      pg_has_role(oid, 'USAGE') as "isUsable",
      has_column_privilege('pg_authid', 'rolpassword', 'SELECT') as "maySeePassword",
      jsonb_build_object('SUPERUSER', rolsuper, 'CREATEDB', rolcreatedb, 'CREATEROLE', rolcreaterole,
        'REPLICATION', rolreplication, 'BYPASSRLS', rolbypassrls) as attributes
    from pg_roles r where rolname = ${checkedName(name)}`;
  if (!row) return undefined;
  const { attributes, maySeePassword, ...role } = row;
  const held = Object.entries(attributes) as [RoleAttribute, boolean][];
  const isKnown = maySeePassword && password !== undefined;
  return {
    ...role,
    surplus: held.flatMap(([attribute, isHeld]) => (isHeld ? [attribute] : [])),
    hasPassword: isKnown ? await hasPassword(sql, name, password) : undefined,
  };
}

async function hasPassword(sql: Sql, name: string, password: string): Promise<boolean> {
  const [row] = await sql<{ verifier: string | null }[]>`
    select rolpassword as verifier from pg_authid where rolname = ${name}`;
  return isVerifierOf(row?.verifier ?? '', password);
}

/** What a role has anywhere is in pg_shdepend: as owner, by a grant, in a policy. */
export async function isConfinedTo(sql: Sql, name: string, database: string): Promise<boolean> {
  const [row] = await sql<{ isConfined: boolean }[]>`
    select not exists (select from pg_auth_members where roleid = r.oid and pg_get_userbyid(member) <> current_user)
      and not exists (
        select from pg_shdepend where refclassid = 'pg_authid'::regclass and refobjid = r.oid
          and dbid <> d.oid and (classid, objid) is distinct from ('pg_database'::regclass, d.oid)
      ) as "isConfined"
    from pg_roles r, pg_database d where rolname = ${checkedName(name)} and datname = ${checkedName(database)}`;
  return row?.isConfined ?? false;
}

/** Takes it out of these roles, whoever put it there. */
export async function leavingStatements(sql: Sql, name: string, groups: readonly string[]): Promise<readonly string[]> {
  const rows = await sql<{ group: string; grantor: string; version: number }[]>`
    select pg_get_userbyid(roleid) as "group", pg_get_userbyid(grantor) as grantor,
      current_setting('server_version_num')::int as version
    from pg_auth_members where member = (select oid from pg_roles where rolname = ${checkedName(name)}) order by 1, 2`;
  return rows.flatMap(({ group, grantor, version }) => {
    if (!groups.includes(group)) return [];
    const from = version >= GRANTORS_SINCE ? ` granted by ${quoteName(grantor)}` : '';
    return [`revoke ${quoteName(group)} from ${quoteName(name)}${from} cascade`];
  });
}

/** Everywhere, and in each database that it has settings for. */
export async function resettingStatements(sql: Sql, name: string): Promise<readonly string[]> {
  const rows = await sql<{ database: string | null }[]>`
    select distinct datname as database from pg_db_role_setting left join pg_database on oid = setdatabase
    where setrole = (select oid from pg_roles where rolname = ${checkedName(name)})`;
  return rows.map(({ database }) => {
    const where = database === null ? '' : ` in database ${quoteName(database)}`;
    return `alter role ${quoteName(name)}${where} reset all`;
  });
}
