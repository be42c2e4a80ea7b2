/**
 * Brings a database to this program's schema. Forward only: each numbered file of `sql/` runs once, in order, with its
 * checksum kept; a database that was changed by a newer program, or by another text of the same file, is refused.
 */

import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import type { Sql } from '#adapters/postgres/client.ts';
import { withSession } from '#adapters/postgres/session.ts';

const SQL_DIRECTORY = new URL('../../sql/', import.meta.url);
const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/;
const BOOTSTRAP_VERSION = 0;

/** The schema is not one that this program can work with. The message says what to do. */
export class SchemaMismatch extends Error {
  override readonly name = 'SchemaMismatch';
}

interface Migration {
  readonly version: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
}

interface AppliedMigration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
}

/**
 * Runs what is missing, through a transaction pooler too. Any number of processes may call it at once: each file is one
 * transaction under one advisory lock, and whoever gets it runs the next one that is missing then.
 * @throws {SchemaMismatch} for a changed checksum, or a schema newer than this program.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const migrations = await readMigrations();
  const numbered = migrations.filter((migration) => migration.version !== BOOTSTRAP_VERSION);
  const bootstrap = migrations.find((migration) => migration.version === BOOTSTRAP_VERSION);
  await withSession(databaseUrl, { applicationName: 'plumbline migrate', pooler: 'any' }, async (sql) => {
    if (bootstrap) await inTurn(sql, () => sql.unsafe(bootstrap.text));
    while (await inTurn(sql, () => runNext(sql, numbered)));
  });
}

/** In a transaction of its own, while no other process is in one. The session of a failed one is of no use any more. */
async function inTurn<T>(sql: Sql, work: () => Promise<T>): Promise<T> {
  await sql.unsafe(`begin; select pg_advisory_xact_lock(hashtextextended('plumbline/migrate', 0))`);
  const result = await work();
  await sql`commit`;
  return result;
}

/** Whether there was one. */
async function runNext(sql: Sql, migrations: readonly Migration[]): Promise<boolean> {
  const [next] = missing(migrations, await applied(sql));
  if (next) await run(sql, next);
  return next !== undefined;
}

/**
 * Checks, without changing anything, that the schema is exactly this program's.
 * @throws {SchemaMismatch} when it is older, newer or different.
 */
export async function assertSchemaIsCurrent(databaseUrl: string): Promise<void> {
  const migrations = (await readMigrations()).filter((migration) => migration.version !== BOOTSTRAP_VERSION);
  await withSession(databaseUrl, { applicationName: 'plumbline schema check', pooler: 'any' }, async (sql) => {
    const behind = missing(migrations, await applied(sql));
    if (behind.length > 0) {
      throw new SchemaMismatch(`the database lacks ${behind.length} migrations of this program; run npm run migrate`);
    }
  });
}

async function readMigrations(): Promise<readonly Migration[]> {
  const names = (await readdir(SQL_DIRECTORY)).filter((name) => name.endsWith('.sql')).toSorted();
  return Promise.all(names.map(readMigration));
}

async function readMigration(fileName: string): Promise<Migration> {
  const match = FILE_NAME.exec(fileName);
  if (!match) throw new Error(`sql/${fileName}: a migration is named 0001_what_it_does.sql`);
  const text = await readFile(new URL(fileName, SQL_DIRECTORY), 'utf8');
  return {
    version: Number(match[1]),
    name: fileName,
    text,
    checksum: createHash('sha256').update(text).digest('hex'),
  };
}

/** None where nothing of this program ever was. */
async function applied(sql: Sql): Promise<readonly AppliedMigration[]> {
  const [ledger] = await sql<{ exists: boolean }[]>`select to_regclass('plumbline.migration') is not null as exists`;
  if (!ledger?.exists) return [];
  return sql<AppliedMigration[]>`select version, name, checksum from plumbline.migration order by version`;
}

function missing(migrations: readonly Migration[], done: readonly AppliedMigration[]): readonly Migration[] {
  const known = new Map(migrations.map((migration) => [migration.version, migration]));
  for (const row of done) {
    const migration = known.get(row.version);
    if (!migration) {
      throw new SchemaMismatch(
        `the database has migration ${row.name}, which this program does not know: it is newer. Start the newer program.`,
      );
    }
    if (migration.checksum !== row.checksum) {
      throw new SchemaMismatch(
        `sql/${migration.name} differs from the text that was applied to this database. Migrations are never edited; ` +
          'restore the file and add a new one.',
      );
    }
  }
  const versions = new Set(done.map((row) => row.version));
  return migrations.filter((migration) => !versions.has(migration.version));
}

async function run(sql: Sql, migration: Migration): Promise<void> {
  try {
    await sql`set local role plumbline_migrator`;
    await sql.unsafe(migration.text);
    await sql`insert into plumbline.migration (version, name, checksum)
      values (${migration.version}, ${migration.name}, ${migration.checksum})`;
  } catch (error) {
    throw new Error(`sql/${migration.name}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
