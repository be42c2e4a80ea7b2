/** A real PostgreSQL server for managed databases: with the login of an RDS-like service, and a look at what is there. */

import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';
import { postgresDatabaseServers } from '#adapters/postgres/servers/database-servers.ts';
import type { Kind } from '#core/kind.ts';
import type { DatabaseServers } from '#core/ports/database-servers.ts';
import { managedDatabase } from '#functions/reconcile/kinds/managed-database.ts';
import { roleBinding } from '#functions/reconcile/kinds/role-binding.ts';
import { openPassStore, type PassStore, type TenantPasses } from '#test/support/tenant-passes.ts';

export interface DatabaseWorld {
  readonly servers: DatabaseServers;
  /** Of the login that controllers use: CREATEDB, CREATEROLE, and no superuser. */
  readonly url: string;
  readonly database: Kind;
  readonly binding: Kind;
  /** A tenant of its own, on a store that all tenants of this world share. */
  newTenant(): Promise<TenantPasses>;
  /** Runs SQL as the superuser. */
  sql(text: string, database?: string): Promise<readonly postgres.Row[]>;
  /** A session as this role, to be closed by the test. */
  connect(database: string, role: string, password: string): postgres.Sql;
  /** A session as the owner of a ManagedDatabase, with what its status says, to be closed by the test. */
  enter(tenant: TenantPasses, name: string): Promise<postgres.Sql>;
  close(): Promise<void>;
}

export interface DatabaseWorldOptions {
  /** Of the controllers' login. @default false */
  readonly isSuperuser?: boolean;
  /** Through which the controllers connect. */
  readonly proxyPort?: number;
  /** After which the server ends a silent session of theirs. */
  readonly silenceMs?: number;
}

export async function openDatabaseWorld({
  isSuperuser = false,
  proxyPort,
  silenceMs,
}: DatabaseWorldOptions = {}): Promise<DatabaseWorld> {
  const adminUrl = inject('postgresAdminUrl');
  const admin = session(adminUrl);
  const suffix = randomBytes(5).toString('hex');
  const login = `managing-${suffix}`;
  const rights = isSuperuser ? 'superuser' : 'createdb createrole';
  await admin.unsafe(`create role "${login}" login ${rights} password 'secret'; grant pg_signal_backend to "${login}"`);
  const url = new URL(adminUrl);
  url.username = login;
  url.password = 'secret';
  url.pathname = '/postgres';
  if (proxyPort !== undefined) url.port = String(proxyPort);
  const servers = postgresDatabaseServers(
    new Map([
      ['local', url.href],
      ['other', url.href],
    ]),
    silenceMs === undefined ? {} : { silenceMs },
  );
  const database = managedDatabase({ servers }) as unknown as Kind;
  const binding = roleBinding({ servers }) as unknown as Kind;
  const tenants: string[] = [];
  let store: Promise<PassStore> | undefined;
  const connect = (name: string, role: string, password: string): postgres.Sql => {
    const own = new URL(databaseUrl(adminUrl, name));
    own.username = encodeURIComponent(role);
    own.password = password;
    return session(own.href);
  };
  return {
    servers,
    url: url.href,
    database,
    binding,
    async newTenant() {
      const tenant = `t${randomBytes(5).toString('hex')}`;
      tenants.push(tenant);
      store ??= openPassStore([database, binding], `test-${suffix}`);
      return (await store).newTenant(tenant);
    },
    // Most look at the server as a whole, thousands of times.
    sql: async (text, name) => (name === undefined ? admin.unsafe(text) : run(databaseUrl(adminUrl, name), text)),
    connect,
    async enter(tenant, name) {
      const [owner, password] = [
        await tenant.text(database, name, 'owner'),
        await tenant.text(database, name, 'password'),
      ];
      return connect(`${tenant.tenant}_${name}`, owner, password);
    },
    async close() {
      await (await store)?.close();
      for (const tenant of tenants) await removeAll(admin, tenant);
      await admin.unsafe(`drop owned by "${login}" cascade`);
      await admin.end();
      await run(databaseUrl(adminUrl, 'postgres'), `drop owned by "${login}" cascade; drop role "${login}"`);
    },
  };
}

/** What tests of failures leave behind. */
async function removeAll(admin: postgres.Sql, tenant: string): Promise<void> {
  const databases = await admin.unsafe(`select datname from pg_database where datname like '${tenant}\\_%'`);
  for (const { datname } of databases) await admin.unsafe(`drop database "${String(datname)}" with (force)`);
  const roles = await admin.unsafe(`select rolname from pg_roles where rolname like '${tenant}\\_%'`);
  for (const { rolname } of roles)
    await admin.unsafe(`drop owned by "${String(rolname)}" cascade; drop role "${String(rolname)}"`);
}

async function run(url: string, text: string): Promise<readonly postgres.Row[]> {
  const sql = session(url);
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function session(url: string): postgres.Sql {
  return postgres(url, { max: 1, onnotice: () => undefined, fetch_types: false });
}

function databaseUrl(adminUrl: string, database: string | undefined): string {
  const url = new URL(adminUrl);
  if (database !== undefined) url.pathname = `/${database}`;
  return url.href;
}
