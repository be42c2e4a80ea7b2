/**
 * PgBouncer with sessions that it keeps and lends for as long as a client stays: as near to Hyperdrive as one machine
 * has, for clients whose statements are prepared and which come for one request.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '#infra/kafka/ports.ts';

export interface SessionPooler {
  /** The same server through it, for any login of it. */
  through(databaseUrl: string): string;
  stop(): Promise<void>;
}

/** @param serverUrl with a login that may read passwords */
export async function startSessionPooler(serverUrl: string): Promise<SessionPooler> {
  const { hostname, port, username, password } = new URL(serverUrl);
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-pooler-'));
  await chmod(directory, 0o755);
  const [listenPort = 0] = await freePorts(1);
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: String(listenPort),
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: join(directory, 'users'),
    auth_user: decodeURIComponent(username),
    pool_mode: 'session',
    // What statements leave behind; to discard all would make each session cold again.
    server_reset_query: 'deallocate all',
    default_pool_size: '20',
    max_client_conn: '500',
    // It refuses to run as root.
    ...(process.getuid?.() === 0 && { user: 'nobody' }),
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  const file = join(directory, 'pgbouncer.ini');
  await writeFile(file, `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\n${lines.join('')}`);
  await writeFile(settings.auth_file, `"${settings.auth_user}" "${decodeURIComponent(password)}"\n`);
  const child = spawn(process.env['PLUMBLINE_TEST_PGBOUNCER'] ?? 'pgbouncer', ['--quiet', file], { stdio: 'ignore' });
  const killWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const exit = once(child, 'exit');
  await Promise.race([
    untilReachable(listenPort),
    exit.then((): never => {
      throw new Error('pgbouncer did not start');
    }),
  ]);
  return {
    through(databaseUrl) {
      const url = new URL(databaseUrl);
      url.hostname = '127.0.0.1';
      url.port = String(listenPort);
      return url.href;
    },
    async stop() {
      process.off('exit', killWithUs);
      child.kill('SIGQUIT');
      await exit;
      await rm(directory, { recursive: true });
    },
  };
}

async function untilReachable(port: number): Promise<void> {
  for (;;) {
    const socket = connect({ host: '127.0.0.1', port });
    const isUp = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
