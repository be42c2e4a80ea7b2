/** What becomes of both where a process dies, statement by statement: `database-crash-points.test.ts`. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { type External, openTestKit, type TestKit } from 'plumbline/testkit';
import type { Sql } from '#adapters/postgres/client.ts';
import type { Kind } from '#core/kind.ts';
import type { DatabaseServers } from '#core/ports/database-servers.ts';
import { managedDatabase } from '#functions/reconcile/kinds/managed-database.ts';
import { roleBinding } from '#functions/reconcile/kinds/role-binding.ts';
import { query } from '#test/support/embedded.ts';
import { openConnection } from '#test/support/prepared-database.ts';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';

const TIMEOUT_MS = 240_000;

let world: DatabaseWorld;
let tenant: string;
let kit: TestKit | undefined;

beforeAll(async () => {
  world = await openDatabaseWorld();
});

afterAll(() => world.close());

async function open(kinds: (external: External) => readonly Kind[]): Promise<TestKit> {
  await kit?.close();
  tenant = `t${randomBytes(5).toString('hex')}`;
  kit = await openTestKit({ serverUrl: inject('postgresAdminUrl'), tenants: [tenant], kinds });
  return kit;
}

afterAll(async () => {
  await reset();
  await kit?.close();
});

/** All that is there of the tenant on the server, with its markers. */
async function state(): Promise<object> {
  const databases = await world.sql(`
    select datname as name, shobj_description(oid, 'pg_database') as marker, datdba::regrole::text as owner,
      datconnlimit as "limit", has_database_privilege('public', oid, 'connect') as open
    from pg_database where datname like '${tenant}\\_%' order by 1`);
  const roles = await world.sql(`
    select rolname as name, shobj_description(oid, 'pg_authid') as marker, rolcanlogin as "canLogIn",
      array(select pg_get_userbyid(roleid)::text from pg_auth_members where member = pg_roles.oid)::text as groups
    from pg_roles where rolname like '${tenant}\\_%' order by 1`);
  return { ...byName(databases), ...byName(roles) };
}

/** Who may do what with the tables of a database. */
async function rightsIn(database: Sql): Promise<object> {
  const grants = await database<{ grantee: string; has: string }[]>`
    select grantee, string_agg(table_name || ' ' || privilege_type, ', ' order by table_name, privilege_type) as has
    from information_schema.table_privileges where grantee like ${`${tenant}\\_%`} group by 1 order by 1`;
  return Object.fromEntries(grants.map(({ grantee, has }) => [grantee, has]));
}

function byName(rows: readonly { readonly [column: string]: unknown }[]): object {
  return Object.fromEntries(rows.map(({ name, ...row }) => [name, row]));
}

async function reset(): Promise<void> {
  const databases = await world.sql(`select datname as name from pg_database where datname like '${tenant}\\_%'`);
  for (const { name } of databases) await world.sql(`drop database "${String(name)}" with (force)`);
  const roles = await world.sql(`select rolname as name from pg_roles where rolname like '${tenant}\\_%'`);
  for (const { name } of roles) await world.sql(`drop role "${String(name)}"`);
}

function databaseSteps(opened: TestKit): readonly (() => unknown)[] {
  const name = `${tenant}_orders`;
  return [
    () => opened.create('ManagedDatabase', 'orders', { extensions: ['citext'], connectionLimit: 9 }),
    async () => {
      await opened.update('ManagedDatabase', 'orders', { rotationToken: 'b', connectionLimit: null });
      await world.sql(`grant connect on database "${name}" to public; alter role "${name}_owner" nologin`);
    },
    () => opened.delete('ManagedDatabase', 'orders'),
  ];
}

/** Of a database that is there all the time: making one for each run would take most of the time. */
function bindingSteps(opened: TestKit): readonly (() => unknown)[] {
  const name = `${tenant}_orders`;
  return [
    async () => {
      const { metadata } = await opened.create('ManagedDatabase', 'orders');
      const { marker } = await markerOf(opened, metadata.uid ?? '');
      await world.sql(`comment on database "${name}" is '${marker}'`);
      const status = {
        conditions: [{ type: 'Ready', status: 'True', observedGeneration: 1 }],
        server: 'local',
        database: name,
        owner: `${name}_owner`,
      };
      await query(
        opened.databaseUrl,
        `update plumbline.resource set status = '${JSON.stringify(status)}' where name = 'orders'`,
      );
      await opened.create('RoleBinding', 'a', { database: 'orders', subject: 'ann', role: 'writer' });
    },
    () => opened.update('RoleBinding', 'a', { subject: 'bob', role: 'owner' }),
    () => opened.delete('RoleBinding', 'a'),
    () => opened.delete('ManagedDatabase', 'orders'),
  ];
}

async function markerOf({ databaseUrl }: TestKit, uid: string): Promise<{ readonly marker: string }> {
  const [row] = await query(databaseUrl, 'select id::text as id from plumbline.installation');
  return { marker: `plumbline:${row?.['id']}/plumbline.dev/ManagedDatabase/${uid}` };
}

/** Its calls can fail, but for hanging up: that has its effect in any case. */
function breakable(external: External): DatabaseServers {
  return {
    names: world.servers.names,
    open(name, work) {
      const server = world.servers.open(name, work);
      const { databases, roles, inside, listMarked } = external(server, 'server');
      return { ...server, databases, roles, inside, listMarked };
    },
  };
}

describe('the controller of databases', () => {
  const kinds = (external: External): readonly Kind[] => [managedDatabase({ servers: breakable(external) })];

  test(
    'ends the same whatever fails, and harms nothing meanwhile',
    async () => {
      const opened = await open(kinds);
      const faults = ['lost-answer', 'time-out'] as const;
      const report = await opened.faultEverywhere({ steps: databaseSteps(opened), state, reset }, { faults });
      expect(report.runs).toBe(report.calls.length * faults.length);
      expect(report.calls).toContain('server.databases.create');
    },
    TIMEOUT_MS,
  );
});

describe('the controller of bindings', () => {
  const kinds = (external: External): readonly Kind[] => [roleBinding({ servers: breakable(external) })];

  async function openWithDatabase(): Promise<TestKit> {
    const opened = await open(kinds);
    const name = `${tenant}_orders`;
    await world.sql(`create role "${name}_owner"; grant "${name}_owner" to "${new URL(world.url).username}"`);
    await world.sql(`create database "${name}" owner "${name}_owner"`);
    await world.sql(`revoke all on database "${name}" from public`);
    await world.sql(`set role "${name}_owner"; create table things (id int)`, name);
    return opened;
  }

  test(
    'ends the same whatever fails, and harms nothing meanwhile',
    async () => {
      const opened = await openWithDatabase();
      const url = Object.assign(new URL(inject('postgresAdminUrl')), { pathname: `/${tenant}_orders` });
      const inside = openConnection(url.href);
      onTestFinished(() => inside.end());
      const faults = ['lost-answer'] as const;
      const stateAndRights = async (): Promise<object> => ({ ...(await state()), rights: await rightsIn(inside) });
      const report = await opened.faultEverywhere({ steps: bindingSteps(opened), state: stateAndRights }, { faults });
      expect(report.runs).toBe(report.calls.length * faults.length);
    },
    TIMEOUT_MS,
  );
});
