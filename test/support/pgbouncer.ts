/** PgBouncer in transaction mode, where it is installed (Debian: `apt-get install pgbouncer`). */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { freePorts } from '#infra/kafka/ports.ts';

export interface PgBouncer {
  /** To the same database, with the login of servers. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A name and a password, as they are in URLs of random letters. */
export interface Login {
  readonly name: string;
  readonly password: string;
}

export interface PgBouncerOptions {
  /** That it lends to each login in each database. @default so few that statements of one client meet those of others */
  readonly sessions?: number;
  /** What it lends them for. @default transaction */
  readonly mode?: 'transaction' | 'session';
  /** Of its own, beside and before those that follow from these. */
  readonly settings?: Readonly<Record<string, string>>;
}

const PROGRAM = process.env['PLUMBLINE_TEST_PGBOUNCER'] ?? 'pgbouncer';
const SESSIONS = 4;

/** Why it cannot run here; undefined when it can. */
export const noPgBouncer: string | undefined =
  spawnSync(PROGRAM, ['--version']).status === 0
    ? undefined
    : `${PROGRAM} does not run; PLUMBLINE_TEST_PGBOUNCER names another`;
if (noPgBouncer !== undefined) console.warn(`skipped: ${noPgBouncer}`);

export async function startPgBouncer(databaseUrl: string): Promise<PgBouncer> {
  const { pathname } = new URL(databaseUrl);
  const login = { name: `${pathname.slice(1)}_pooled`, password: crypto.randomUUID() };
  await withSession(databaseUrl, { applicationName: 'test' }, (sql) => makePooledLogin(sql, login));
  const { port, stop } = await runPgBouncer(databaseUrl, [login]);
  return { url: `postgres://${login.name}:${login.password}@127.0.0.1:${port}${pathname}`, stop };
}

/** In front of all databases of a server, for these logins. */
export async function runPgBouncer(
  serverUrl: string,
  logins: readonly Login[],
  { sessions = SESSIONS, mode = 'transaction', settings: own }: PgBouncerOptions = {},
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const { hostname, port } = new URL(serverUrl);
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-pgbouncer-'));
  await chmod(directory, 0o755);
  const [listenPort = 0] = await freePorts(1);
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: String(listenPort),
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: join(directory, 'users'),
    pool_mode: mode,
    default_pool_size: String(sessions),
    // Sessions in databases that are gone must not fill the server.
    server_idle_timeout: '10',
    max_client_conn: '2000',
    // It refuses to run as root.
    ...(process.getuid?.() === 0 && { user: 'nobody' }),
    ...own,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const file = join(directory, 'pgbouncer.ini');
  await writeFile(file, `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\n${lines.join('\n')}\n`);
  await writeFile(settings.auth_file, logins.map(({ name, password }) => `"${name}" "${password}"\n`).join(''));
  const child = spawn(PROGRAM, [file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const killWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  await untilUp(child);
  return {
    port: listenPort,
    async stop(): Promise<void> {
      process.off('exit', killWithUs);
      child.kill('SIGQUIT');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      await rm(directory, { recursive: true });
    },
  };
}

async function untilUp(child: ChildProcess): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      if (said.length < 10_000) said += text;
      if (said.includes('process up')) resolve();
    });
    child.once('exit', () => reject(new Error(`pgbouncer did not start: ${said}`)));
  });
}
