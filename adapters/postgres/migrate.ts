/**
 * Brings a database to this program's schema. Forward only: each numbered file of `sql/` runs once, in order, with its
 * checksum kept; a database that was changed by a newer program, or by another text of the same file, is refused.
 */

import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { connect, type Connection, withConnection } from '#adapters/postgres/client.ts';

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
 * Runs what is missing. Any number of processes may call it at once: one advisory lock lets one work and the others wait,
 * then find nothing to do. Each file is one transaction.
 * @throws {SchemaMismatch} for a changed checksum, or a schema newer than this program.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const migrations = await readMigrations();
  const sql = connect(databaseUrl, { applicationName: 'plumbline migrate', maxConnections: 1 });
  try {
    await withConnection(sql, async (connection) => {
      await connection`select pg_advisory_lock(hashtextextended('plumbline/migrate', 0))`;
      const bootstrap = migrations.find((migration) => migration.version === BOOTSTRAP_VERSION);
      if (bootstrap) await connection.unsafe(bootstrap.text);
      const numbered = migrations.filter((migration) => migration.version !== BOOTSTRAP_VERSION);
      for (const migration of missing(numbered, await applied(connection))) await run(connection, migration);
    });
  } finally {
    await sql.end();
  }
}

/**
 * Checks, without changing anything, that the schema is exactly this program's.
 * @throws {SchemaMismatch} when it is older, newer or different.
 */
export async function assertSchemaIsCurrent(databaseUrl: string): Promise<void> {
  const migrations = (await readMigrations()).filter((migration) => migration.version !== BOOTSTRAP_VERSION);
  const sql = connect(databaseUrl, { applicationName: 'plumbline schema check', maxConnections: 1 });
  try {
    await withConnection(sql, async (connection) => {
      const behind = missing(migrations, await applied(connection));
      if (behind.length > 0) {
        throw new SchemaMismatch(`the database lacks ${behind.length} migrations of this program; run npm run migrate`);
      }
    });
  } finally {
    await sql.end();
  }
}

async function readMigrations(): Promise<readonly Migration[]> {
  const names = (await readdir(SQL_DIRECTORY)).filter((name) => name.endsWith('.sql')).sort();
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

async function applied(connection: Connection): Promise<readonly AppliedMigration[]> {
  return connection<AppliedMigration[]>`select version, name, checksum from plumbline.migration order by version`;
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

async function run(connection: Connection, migration: Migration): Promise<void> {
  await connection`begin`;
  try {
    await connection`set local role plumbline_migrator`;
    await connection.unsafe(migration.text);
    await connection`insert into plumbline.migration (version, name, checksum)
      values (${migration.version}, ${migration.name}, ${migration.checksum})`;
    await connection`commit`;
  } catch (error) {
    await connection`rollback`;
    throw new Error(`sql/${migration.name}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
