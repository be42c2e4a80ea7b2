/** A database that things can be written in: migrated, with the kinds of the black-box suites, room for events, tenants. */

import postgres from 'postgres';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import testKinds from '#test/http/kinds.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';

export interface PreparedDatabase {
  /** Of the superuser. */
  readonly url: string;
  /** The superuser's pool: raw SQL. */
  readonly sql: Sql;
  /** One connection, for transactions of several statements; closed with the database. */
  connection(): Sql;
  close(): Promise<void>;
}

/** One connection of the driver, made when it is first used, for transactions of several statements. */
export function openConnection(url: string, applicationName: string = 'test'): Sql {
  return postgres(url, {
    max: 1,
    types: { bigint: postgres.BigInt },
    onnotice: () => undefined,
    connection: { application_name: applicationName },
  });
}

export async function prepareDatabase(tenants: readonly string[]): Promise<PreparedDatabase> {
  const database = await createTestDatabase();
  await registerKinds(database.url, [...SHIPPED_KINDS, ...testKinds]);
  const sql = connect(database.url, { applicationName: 'test', maxConnections: 20 });
  await postgresRetention(sql).prepare();
  await createTenants(sql, tenants);
  const connections: Sql[] = [];
  return {
    url: database.url,
    sql,
    connection() {
      const connection = openConnection(database.url);
      connections.push(connection);
      return connection;
    },
    async close() {
      await Promise.all([sql, ...connections].map((each) => each.end({ timeout: 5 })));
      await database.drop();
    },
  };
}

/** By raw SQL. */
export async function createTenants(sql: Sql, names: readonly string[]): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    select 'system', 'plumbline.dev', 'Tenant', name from unnest(${[...names]}::text[]) name`;
}
