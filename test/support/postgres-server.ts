/**
 * One real PostgreSQL for a whole test run, and databases in it. The server belongs to vitest's main process and ends
 * with it, however that ends. `PLUMBLINE_TEST_POSTGRES=15` takes Debian's PostgreSQL 15 instead of the bundled one.
 */

import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';
import { migrate } from '#adapters/postgres/migrate.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of the superuser, to a database without tables. */
    readonly postgresAdminUrl: string;
  }
}

export interface TestDatabase {
  /** Of the superuser. */
  readonly url: string;
  /** Cuts sessions that are still open. */
  drop(): Promise<void>;
}

const TEMPLATE = 'plumbline_template';

export interface TestDatabaseOptions {
  /** Otherwise it is empty. @default true */
  readonly migrated?: boolean;
}

/** A database of its own for a test or a file of tests: a copy of one that was migrated once in this run. */
export async function createTestDatabase({ migrated = true }: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const adminUrl = inject('postgresAdminUrl');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await asAdmin(adminUrl, async (sql) => {
    if (migrated) await ensureTemplate(sql, adminUrl);
    await sql.unsafe(`create database ${name} template ${migrated ? TEMPLATE : 'template1'}`);
  });
  return testDatabase(adminUrl, name);
}

/** As a backup has it: to which nobody is connected while it is copied. */
export async function copyDatabase(url: string): Promise<TestDatabase> {
  const adminUrl = inject('postgresAdminUrl');
  const name = `test_${randomBytes(6).toString('hex')}`;
  const source = new URL(url).pathname.slice(1);
  await asAdmin(adminUrl, async (sql) => void (await sql.unsafe(`create database ${name} template ${source}`)));
  return testDatabase(adminUrl, name);
}

function testDatabase(adminUrl: string, name: string): TestDatabase {
  return {
    url: databaseUrl(adminUrl, name),
    drop: () => asAdmin(adminUrl, async (sql) => void (await sql.unsafe(`drop database ${name} with (force)`))),
  };
}

/** Test files run in several processes: the lock lets one make the template, and its name says that it is complete. */
export async function ensureTemplate(sql: postgres.Sql, adminUrl: string): Promise<void> {
  await sql`select pg_advisory_lock(hashtextextended(${TEMPLATE}, 0))`;
  const [existing] = await sql`select from pg_database where datname = ${TEMPLATE}`;
  if (!existing) {
    const draft = `${TEMPLATE}_draft`;
    await sql.unsafe(`drop database if exists ${draft} with (force)`);
    await sql.unsafe(`create database ${draft}`);
    await migrate(databaseUrl(adminUrl, draft));
    await sql.unsafe(`alter database ${draft} rename to ${TEMPLATE}`);
  }
  await sql`select pg_advisory_unlock(hashtextextended(${TEMPLATE}, 0))`;
}

async function asAdmin(adminUrl: string, use: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  try {
    await use(sql);
  } finally {
    await sql.end();
  }
}

function databaseUrl(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}
