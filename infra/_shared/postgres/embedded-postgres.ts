/**
 * A PostgreSQL of our own, for one machine and for tests: full durability, reachable from this machine alone, with a
 * password made at random. It is started again when it dies, on the same port, and ends with the process that started it.
 *
 * As root it runs under an unprivileged account of the machine, see `account.ts`; where its programs and its
 * data lie is told in `binaries.ts` and `home.ts`.
 */

import { join } from 'node:path';
import type { Logger } from 'pino';
import { openDataDirectory } from '#infra/_shared/data-dir/data-directory.ts';
import { lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';
import { findBinaries } from '#infra/_shared/postgres/binaries.ts';
import { DATABASE_NAME, openCluster } from '#infra/_shared/postgres/cluster.ts';
import { openHome } from '#infra/_shared/postgres/home.ts';
import { rotateLog } from '#infra/_shared/postgres/log-file.ts';
import { stopOrphan } from '#infra/_shared/postgres/orphan.ts';
import type { ServerExit } from '#infra/_shared/postgres/server-process.ts';
import { supervise } from '#infra/_shared/postgres/supervisor.ts';

export interface EmbeddedPostgresOptions {
  /** Made when absent; the cluster lies in it, or is linked from it. */
  readonly dataDir: string;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** @default that of the last run if it is free, else another; the same until `stop` */
  readonly port?: number;
  /** A folder with `initdb` and `postgres`. @default those of the npm package */
  readonly programs?: string;
  /** Beside, and over, the settings of `server-process.ts`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called each time that the server ended by itself, before it is started again. */
  readonly onUnexpectedExit?: (exit: ServerExit) => void;
}

export interface EmbeddedPostgres {
  /** Of the superuser and its database, both named `plumbline`; with the password. */
  readonly url: string;
  readonly port: number;
  /** Of the run that is current: another one after the server died. */
  readonly pid: number;
  /** Without symbolic links. */
  readonly clusterDirectory: string;
  readonly logFile: string;
  /** Cuts all sessions, flushes and ends. Calling it again waits for the same end. */
  stop(): Promise<void>;
}

/**
 * Starts the server, after making its cluster when there is none, and answers when it accepts connections.
 * @throws {StartError} when this machine cannot run it, when another process uses this cluster, or when it does not start.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  await openDataDirectory(options.dataDir);
  const home = await openHome(options.dataDir);
  // A lock beside that of DATA_DIR: a copied DATA_DIR can link to the same cluster.
  const lock = await lockInstance(home.directory);
  try {
    const binaries = await findBinaries(home.account, options.programs);
    const cluster = await openCluster(home, binaries);
    const logFile = join(home.directory, 'postgres.log');
    await rotateLog(logFile);
    await stopOrphan(cluster.directory, options.log);
    const server = await supervise({
      program: binaries.postgres,
      clusterDirectory: cluster.directory,
      account: home.account,
      logFile,
      port: options.port,
      settings: options.settings ?? {},
      log: options.log,
      ...(options.onUnexpectedExit && { onUnexpectedExit: options.onUnexpectedExit }),
    });
    let stopped: Promise<void> | undefined;
    return {
      url: `postgres://${DATABASE_NAME}:${cluster.password}@127.0.0.1:${server.port}/${DATABASE_NAME}`,
      port: server.port,
      get pid(): number {
        return server.pid();
      },
      clusterDirectory: cluster.directory,
      logFile,
      stop(): Promise<void> {
        stopped ??= server.stop().finally(() => lock.release());
        return stopped;
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}
