/**
 * Rights of a role in the database of a session: read from the catalogs, and changed by GRANT and REVOKE. Only what the
 * role holds itself counts, not what it inherits or what everybody has.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import { quoteName } from '#adapters/postgres/servers/quote.ts';
import type { RightsChange, RightsInDatabase, Securable } from '#core/ports/database-servers.ts';

/** On what `alter default privileges` gives them. */
const FUTURE: Readonly<Record<string, string>> = {
  'future schemas': 'schemas',
  'future tables': 'tables',
  'future sequences': 'sequences',
};

/**
 * Schemas and tables are those that we have the owner's rights on, and that no extension brought: others cannot be
 * changed. What the role owns is left out, for its rights there are the owner's.
 */
export async function readSecurables(sql: Sql, role: string, owner: string): Promise<RightsInDatabase> {
  const rows = await sql<(Omit<Securable, 'held'> & { readonly held: readonly string[] })[]>`
    with subject as (
      select (select oid from pg_roles where rolname = ${role}) as oid, (select oid from pg_roles where rolname = ${owner}) as owner
    ), schemas as (
      select n.* from pg_namespace n where nspname !~ '^pg_' and nspname <> 'information_schema'
        and not exists (select from pg_depend where classid = 'pg_namespace'::regclass and objid = n.oid and deptype = 'e')
    ), found as (
      select 'database' as kind, quote_ident(datname) as name, datacl as acl
        from pg_database where datname = current_database()
      union all
      select 'schema', quote_ident(nspname), nspacl from schemas, subject
        where nspowner is distinct from subject.oid and pg_has_role(nspowner, 'USAGE')
      union all
      select case relkind when 'S' then 'sequence' else 'table' end, quote_ident(nspname) || '.' || quote_ident(relname), relacl
        from pg_class c join schemas s on s.oid = c.relnamespace, subject
        where relkind in ('r', 'p', 'v', 'm', 'f', 'S') and relowner is distinct from subject.oid
          and pg_has_role(relowner, 'USAGE')
          and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
      union all
      select 'future ' || plural, '', defaclacl from subject, (values ('n', 'schemas'), ('r', 'tables'), ('S', 'sequences'))
        types (letter, plural) left join pg_default_acl on defaclobjtype = letter::"char" and defaclnamespace = 0
        and defaclrole = (select owner from subject)
    )
    select kind, name,
      array(select distinct privilege_type from aclexplode(acl) where grantee = subject.oid)::text[] as held
    from found, subject
    union all
    select 'membership', quote_ident(${owner}),
      case when exists (select from pg_auth_members m where m.roleid = subject.owner and m.member = subject.oid)
        then '{MEMBER}' else '{}' end::text[] from subject`;
  const [shared] = await sql<{ owns: boolean }[]>`
    select exists (
      select from pg_shdepend where refclassid = 'pg_authid'::regclass and deptype = 'o'
        and dbid = (select oid from pg_database where datname = current_database())
        and refobjid = (select oid from pg_roles where rolname = ${role})
    ) as owns`;
  return { securables: rows, owns: shared?.owns ?? false };
}

/** The statements of a change. What the role has passed on goes with it. */
export function changeStatement(role: string, owner: string, change: RightsChange): readonly string[] {
  const { securable, grant, revoke } = change;
  const { kind, name } = securable;
  const to = quoteName(role);
  const statements: string[] = [];
  if (kind === 'membership') {
    if (revoke.length > 0) statements.push(`revoke ${name} from ${to} cascade`);
    if (grant.length > 0) statements.push(`grant ${name} to ${to}`);
    return statements;
  }
  const future = FUTURE[kind];
  const prefix = future === undefined ? '' : `alter default privileges for role ${quoteName(owner)} `;
  const target = future ?? `${kind} ${name}`;
  if (revoke.length > 0) statements.push(`${prefix}revoke ${revoke.join(', ')} on ${target} from ${to} cascade`);
  if (grant.length > 0) statements.push(`${prefix}grant ${grant.join(', ')} on ${target} to ${to}`);
  return statements;
}
