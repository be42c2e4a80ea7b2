/**
 * Rights of a role in the database of a session: read from the catalogs, and changed by GRANT and REVOKE. Only what the
 * role holds itself counts, not what it inherits or what everybody has.
 */

import type { Fragment, Sql } from '#adapters/postgres/client.ts';
import { quoteName } from '#adapters/postgres/servers/quote.ts';
import type { RightsChange, RightsInDatabase, Securable } from '#core/ports/database-servers.ts';

/** On what `alter default privileges` gives them. */
const FUTURE: Readonly<Record<string, string>> = {
  'future schemas': 'schemas',
  'future tables': 'tables',
  'future sequences': 'sequences',
};

/** What stands before a right when it may be passed on, in SQL too. */
const GRANT_OPTION = 'GRANT OPTION FOR ';
const ADMIN_OPTION = 'ADMIN OPTION FOR ';

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
      select 'database' as kind, quote_ident(datname) as name, datacl as acl, ${owner} as giver
        from pg_database where datname = current_database()
      union all
      select 'schema', quote_ident(nspname), nspacl, ${giverOf(sql, 'nspowner', owner)} from schemas, subject
        where nspowner is distinct from subject.oid and pg_has_role(nspowner, 'USAGE')
      union all
      select case relkind when 'S' then 'sequence' else 'table' end, quote_ident(nspname) || '.' || quote_ident(relname), relacl,
        ${giverOf(sql, 'relowner', owner)}
        from pg_class c join schemas s on s.oid = c.relnamespace, subject
        where relkind in ('r', 'p', 'v', 'm', 'f', 'S') and relowner is distinct from subject.oid
          and pg_has_role(relowner, 'USAGE')
          and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
      union all
      select 'future ' || plural, '', defaclacl, ${owner} from subject, (values ('n', 'schemas'), ('r', 'tables'), ('S', 'sequences'))
        types (letter, plural) left join pg_default_acl on defaclobjtype = letter::"char" and defaclnamespace = 0
        and defaclrole = (select owner from subject)
    )
    select kind, name, giver,
      array(select distinct option || privilege_type
        from aclexplode(acl), unnest(case when is_grantable then array['', ${GRANT_OPTION}] else array[''] end) option
        where grantee = subject.oid)::text[] as held
    from found, subject
    union all
    select 'membership', quote_ident(${owner}), null,
      array(select distinct option || 'MEMBER' from pg_auth_members m,
          unnest(case when m.admin_option then array['', ${ADMIN_OPTION}] else array[''] end) option
        where m.roleid = subject.owner and m.member = subject.oid) from subject`;
  const [shared] = await sql<{ owns: boolean }[]>`
    select exists (
      select from pg_shdepend where refclassid = 'pg_authid'::regclass and deptype = 'o'
        and dbid = (select oid from pg_database where datname = current_database())
        and refobjid = (select oid from pg_roles where rolname = ${role})
    ) as owns`;
  return { securables: rows, owns: shared?.owns ?? false };
}

/** Nobody can be the role that stands for the owner of whatever database one is in. */
function giverOf(sql: Sql, column: 'nspowner' | 'relowner', owner: string): Fragment {
  return sql`case ${sql(column)} when 'pg_database_owner'::regrole then ${owner} else pg_get_userbyid(${sql(column)}) end`;
}

/**
 * The statements of a change. Each is made as the owner: PostgreSQL takes the first of all roles that we could be, which
 * may be the one that is to lose its rights. What that one has passed on goes with them.
 */
export function changeStatements(role: string, owner: string, change: RightsChange): readonly string[] {
  const { giver } = change.securable;
  return [`set local role ${giver === null ? 'none' : quoteName(giver)}`, ...changeStatement(role, owner, change)];
}

function changeStatement(role: string, owner: string, change: RightsChange): readonly string[] {
  const { securable, grant, revoke } = change;
  const { kind, name } = securable;
  const to = quoteName(role);
  if (kind === 'membership') {
    return [
      ...revoke.map(
        (right) => `revoke ${right.startsWith(ADMIN_OPTION) ? ADMIN_OPTION : ''}${name} from ${to} cascade`,
      ),
      ...grant.map(() => `grant ${name} to ${to}`),
    ];
  }
  const future = FUTURE[kind];
  const prefix = future === undefined ? '' : `alter default privileges for role ${quoteName(owner)} `;
  const target = future ?? `${kind} ${name}`;
  const statements: string[] = bunches(revoke).map(
    (rights) => `${prefix}revoke ${rights} on ${target} from ${to} cascade`,
  );
  if (grant.length > 0) statements.push(`${prefix}grant ${grant.join(', ')} on ${target} to ${to}`);
  return statements;
}

/** One statement takes rights, or the options of rights, and not both. */
function bunches(rights: readonly string[]): readonly string[] {
  const options = rights.filter((right) => right.startsWith(GRANT_OPTION));
  const own = rights.filter((right) => !options.includes(right)).join(', ');
  const passed = options.map((right) => right.slice(GRANT_OPTION.length)).join(', ');
  return [...(own === '' ? [] : [own]), ...(passed === '' ? [] : [GRANT_OPTION + passed])];
}
