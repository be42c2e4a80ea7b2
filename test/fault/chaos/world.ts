/** Where the chaos happens: Plumbline's database, and a server of its own for what is managed, whose log is kept. */

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { startEmbeddedPostgres } from '#infra/_shared/postgres/embedded-postgres.ts';
import { type Addresses, chaosKinds } from '#test/fault/chaos/composition.ts';
import { openTrail, prepareTrail } from '#test/fault/chaos/trail.ts';
import { enterableFolder, quiet } from '#test/support/embedded.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { createTenants } from '#test/support/prepared-database.ts';

export const TENANTS: readonly string[] = ['acme', 'globex', 'initech', 'hooli', 'umbrella'];
/** Of the login that manages databases: no superuser. */
export const MANAGER = 'managing';
/** What is done by hand bears this name in the server's log. */
export const HAND = 'by hand';

export interface ChaosWorld {
  readonly addresses: Addresses;
  /** Plumbline's database, as a superuser. */
  readonly sql: Sql;
  /** The database with the trail. */
  readonly trail: Sql;
  /** Runs SQL on the server as a superuser, by hand. */
  byHand(text: string, database?: string): Promise<readonly postgres.Row[]>;
  /** Whether this role can log in. @throws the server's refusal. */
  logIn(database: string, role: string, password: string): Promise<void>;
  /** What the server wrote. */
  serverLog(): Promise<string>;
  close(): Promise<void>;
}

const SETTINGS = {
  // Processes are killed here, not machines.
  fsync: 'off',
  full_page_writes: 'off',
  log_statement: 'ddl',
  log_min_messages: 'error',
  log_min_error_statement: 'error',
  log_line_prefix: '%m [%p] app=%a ',
};

export async function openWorld(): Promise<ChaosWorld> {
  const folder = await enterableFolder();
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), log: quiet, settings: SETTINGS });
  const closeServer = async (): Promise<void> => {
    await server.stop();
    await rm(folder, { recursive: true });
  };
  try {
    return await openOn(server.url, server.logFile, closeServer);
  } catch (error) {
    await closeServer();
    throw error;
  }
}

async function openOn(serverUrl: string, logFile: string, closeServer: () => Promise<void>): Promise<ChaosWorld> {
  const database = await createTestDatabase();
  await byHand(
    `create role ${MANAGER} login createdb createrole password 'secret'; grant pg_signal_backend to ${MANAGER}`,
  );
  await byHand('create database trail');
  const addresses: Addresses = {
    databaseUrl: database.url,
    serverUrl: urlOf('postgres', MANAGER, 'secret'),
    trailUrl: urlOf('trail'),
  };
  const sql = connect(database.url, { applicationName: 'test', maxConnections: 8 });
  const trail = connect(addresses.trailUrl, { applicationName: 'test', maxConnections: 4 });
  await prepareTrail(trail);
  // With their controllers, so that the tenants have finalizers and work items from the start.
  await registerKinds(database.url, chaosKinds(addresses, sql, openTrail(trail), 'nobody'));
  await createTenants(sql, TENANTS);

  return {
    addresses,
    sql,
    trail,
    byHand,
    async logIn(databaseName, role, password) {
      await run(urlOf(databaseName, role, password), 'select');
    },
    serverLog: () => readFile(logFile, 'utf8'),
    async close() {
      await Promise.all([sql, trail].map((each) => each.end({ timeout: 1 })));
      await database.drop();
      await closeServer();
    },
  };

  function byHand(text: string, databaseName: string = 'postgres'): Promise<readonly postgres.Row[]> {
    return run(urlOf(databaseName), text);
  }

  function urlOf(databaseName: string, role?: string, password: string = ''): string {
    const url = new URL(serverUrl);
    url.pathname = `/${databaseName}`;
    if (role !== undefined) {
      url.username = role;
      url.password = encodeURIComponent(password);
    }
    return url.href;
  }
}

async function run(url: string, text: string): Promise<readonly postgres.Row[]> {
  const sql = postgres(url, {
    max: 1,
    fetch_types: false,
    onnotice: () => undefined,
    connection: { application_name: HAND },
  });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
