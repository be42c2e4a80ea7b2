/** The database of a test kit: on an embedded server of its own, or a new one on a server that is given. */

import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { destination, pino } from 'pino';
import { connect } from '#adapters/postgres/client.ts';
import { migrate } from '#adapters/postgres/migrate.ts';
import { startEmbeddedPostgres } from '#infra/_shared/postgres/embedded-postgres.ts';

export interface KitDatabase {
  /** Of a login that owns the schema. */
  readonly url: string;
  close(): Promise<void>;
}

// Tests lose nothing when the machine does.
const SETTINGS = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' };

/** Migrated. @param serverUrl of a login that may create databases; absent: a server is started for it. */
export async function openKitDatabase(serverUrl: string | undefined): Promise<KitDatabase> {
  const database = await (serverUrl === undefined ? startServer() : createDatabase(serverUrl));
  try {
    await migrate(database.url);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function startServer(): Promise<KitDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-testkit-'));
  // Root's server runs under another account, which must be able to enter.
  await chmod(folder, 0o711);
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const server = await startEmbeddedPostgres({
      dataDir: join(folder, 'data'),
      log: pino({ level: 'warn' }, destination(2)),
      settings: SETTINGS,
    });
    return {
      url: server.url,
      async close() {
        await server.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function createDatabase(serverUrl: string): Promise<KitDatabase> {
  const name = `plumbline_testkit_${randomBytes(6).toString('hex')}`;
  await run(`create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, close: () => run(`drop database ${name} with (force)`) };

  async function run(statement: string): Promise<void> {
    const sql = connect(serverUrl, { applicationName: 'plumbline testkit', maxConnections: 1 });
    try {
      await sql.unsafe(statement);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }
}
