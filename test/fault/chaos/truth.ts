/** Whether what objects say is so: in their status, in the table of parts, on the server, inside its databases. */

import { type LiveObject, statusProblems } from '#test/fault/chaos/object-state.ts';
import { PARTS } from '#test/fault/chaos/entry-kind.ts';
import { rightsProblems } from '#test/fault/chaos/rights.ts';
import type { ChaosWorld } from '#test/fault/chaos/world.ts';

/** What is not as it should be, yet or for ever; nothing when all is settled and true. */
export async function findProblems(world: ChaosWorld): Promise<readonly string[]> {
  const objects = await world.sql<LiveObject[]>`
    select uid, tenant, kind, name, generation::int4 as generation, deletion_timestamp is not null as "isDeleting", spec, status
    from plumbline.resource order by tenant, kind, name`;
  const unsettled = [...objects.flatMap(statusProblems), ...(await queueProblems(world))];
  // What is inside databases is looked at when there is a chance that it is right.
  if (unsettled.length > 0) return unsettled;
  const untrue = [...(await partProblems(world, objects)), ...(await serverProblems(world, objects))];
  return untrue.length > 0 ? untrue : rightsProblems(world, objects);
}

/** Nothing is left in the queue for objects that are gone, and nothing fails. */
async function queueProblems({ sql }: ChaosWorld): Promise<readonly string[]> {
  const rows = await sql<{ problem: string }[]>`
    select 'work item of ' || uid || ', which is gone' as problem from plumbline.work_item w
      where not exists (select from plumbline.resource r where r.uid = w.uid)
    union all
    select 'lease of ' || uid || ', which is gone' from plumbline.pass_lease l
      where not exists (select from plumbline.resource r where r.uid = l.uid)
    union all
    select 'work item of ' || uid || ' for ' || controller || ' fails: ' || last_error from plumbline.work_item
      where last_error is not null
    union all
    select 'change ' || id || ' is not mapped' from plumbline.watch_change
    union all
    select 'touch ' || id || ' is not applied' from plumbline.touch`;
  return rows.map(({ problem }) => problem);
}

async function partProblems({ trail }: ChaosWorld, objects: readonly LiveObject[]): Promise<readonly string[]> {
  const rows = await trail<{ text: string }[]>`select concat_ws(' ', entry, part, uid, value) as text from part`;
  const wanted = objects
    .filter(({ kind }) => kind === 'Entry')
    .flatMap(({ uid, tenant, name, spec }) => PARTS.map((part) => `${tenant}/${name} ${part} ${uid} ${spec[part]}`));
  return difference(
    'part',
    wanted,
    rows.map(({ text }) => text),
  );
}

/** Databases and roles, with all that belongs to them; nothing besides. */
async function serverProblems({ sql, byHand }: ChaosWorld, objects: readonly LiveObject[]): Promise<readonly string[]> {
  const [installation] = await sql<{ id: string }[]>`select id from plumbline.installation`;
  const marker = (kind: string, uid: string | undefined): string =>
    `plumbline:${installation?.id}/plumbline.dev/${kind}/${uid}`;
  const managed = objects.filter(({ kind }) => kind === 'ManagedDatabase');
  const databases = managed.map(({ uid, tenant, name, spec }) =>
    [
      `${tenant}_${name}`,
      `${tenant}_${name}_owner`,
      spec['connectionLimit'] ?? -1,
      'closed',
      marker('ManagedDatabase', uid),
    ].join(' '),
  );
  const owners = managed.map(({ uid, tenant, name }) => `${tenant}_${name}_owner ${marker('ManagedDatabase', uid)}`);
  const subjects = objects
    .filter(({ kind }) => kind === 'RoleBinding')
    .map(({ tenant, spec }) => {
      const tenantUid = objects.find(({ kind, name }) => kind === 'Tenant' && name === tenant)?.uid;
      return `${tenant}_${spec['subject']} ${marker('Tenant', tenantUid)}`;
    });
  const foundDatabases = await byHand(`
    select concat_ws(' ', datname, pg_get_userbyid(datdba), datconnlimit,
      case when has_database_privilege('public', oid, 'connect') then 'open' else 'closed' end,
      shobj_description(oid, 'pg_database')) as text
    from pg_database where datname not in ('postgres', 'plumbline', 'trail', 'template0', 'template1')`);
  const foundRoles = await byHand(`
    select concat_ws(' ', rolname, shobj_description(oid, 'pg_authid'),
      case when not rolcanlogin then 'cannot log in' end,
      case when rolsuper or rolcreatedb or rolcreaterole then 'has too much power' end) as text
    from pg_roles where rolname !~ '^pg_' and rolname not in ('plumbline', 'managing')`);
  return [
    ...difference(
      'database',
      databases,
      foundDatabases.map(({ text }) => String(text)),
    ),
    ...difference(
      'role',
      [...owners, ...subjects],
      foundRoles.map(({ text }) => String(text)),
    ),
  ];
}

function difference(what: string, wanted: readonly string[], found: readonly string[]): readonly string[] {
  return [
    ...new Set(wanted.filter((each) => !found.includes(each)).map((each) => `${what} is missing: ${each}`)),
    ...found.filter((each) => !wanted.includes(each)).map((each) => `${what} should not be there: ${each}`),
  ];
}
