/** vitest's global setup: starts the PostgreSQL of the run, one for all projects that use it. */

import { existsSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { destination, pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#infra/_shared/postgres/embedded-postgres.ts';
import { isPooledRun, startPoolerOfRun } from '#test/support/pooler-of-run.ts';
import { makeOwnFolder, removeLeftovers } from '#test/support/leftovers.ts';

const FOLDER_PREFIX = 'plumbline-test-run-';
// Tests kill processes, not machines: what the kernel has is not lost.
const SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: '400' };

interface SharedServer {
  readonly server: Promise<EmbeddedPostgres>;
  readonly folder: string;
  users: number;
  pooler?: ReturnType<typeof startPoolerOfRun>;
}

declare global {
  // Each project loads this module anew; the process is what they share.
  var plumblineTestPostgres: Promise<SharedServer> | undefined;
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  globalThis.plumblineTestPostgres ??= open();
  const opened = await globalThis.plumblineTestPostgres;
  opened.users++;
  const { url } = await opened.server;
  if (isPooledRun) opened.pooler ??= startPoolerOfRun(url);
  await opened.pooler;
  project.provide('postgresAdminUrl', url);

  return async function teardown() {
    if (--opened.users > 0) return;
    await (await opened.pooler)?.stop();
    await (await opened.server).stop();
    await rm(opened.folder, { recursive: true });
  };
}

async function open(): Promise<SharedServer> {
  await removeLeftovers(FOLDER_PREFIX);
  const folder = await makeOwnFolder(FOLDER_PREFIX);
  // Root's server runs under another account, which must be able to enter.
  await chmod(folder, 0o711);
  const programs = chosenPrograms();
  const server = startEmbeddedPostgres({
    dataDir: join(folder, 'data'),
    log: pino({ level: 'warn' }, destination(2)),
    settings: SETTINGS,
    ...(programs !== undefined && { programs }),
  });
  return { server, folder, users: 0 };
}

/** `PLUMBLINE_TEST_POSTGRES=15`: Debian's and Ubuntu's package of that version. */
function chosenPrograms(): string | undefined {
  const version = process.env['PLUMBLINE_TEST_POSTGRES'];
  if (!version) return undefined;
  const programs = `/usr/lib/postgresql/${version}/bin`;
  if (!existsSync(join(programs, 'initdb'))) {
    throw new Error(
      `PLUMBLINE_TEST_POSTGRES is "${version}", but ${programs} has no initdb; install postgresql-${version}`,
    );
  }
  return programs;
}
