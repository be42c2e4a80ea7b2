import { chown, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '#infra/_shared/postgres/embedded-postgres.ts';
import { HOLDER, copyCheckout } from '#test/support/checkout.ts';
import { type Child, startChild } from '#test/support/child.ts';
import { enterableFolder, gone, guardOf, isRunning, query, quiet } from '#test/support/embedded.ts';

let dataDir: string;
let servers: EmbeddedPostgres[];
let children: Child[];

beforeEach(async () => {
  dataDir = await enterableFolder();
  servers = [];
  children = [];
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(children.map((child) => child.exit));
  await Promise.all(servers.map((server) => server.stop()));
  await rm(dataDir, { recursive: true, maxRetries: 10 });
});

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, log: quiet, ...options });
  servers.push(server);
  return server;
}

interface Held {
  readonly holder: Child;
  readonly url: string;
  readonly pid: number;
}

/** A server that another process started, which can be killed. */
async function startElsewhere(checkout = process.cwd()): Promise<Held> {
  const holder = startChild(HOLDER, [dataDir], { cwd: checkout });
  children.push(holder);
  const line = await holder.nextLine();
  if (line === undefined) throw new Error((await holder.exit).errors);
  return { holder, ...JSON.parse(line) };
}

describe('startEmbeddedPostgres()', () => {
  test('gives a durable UTF-8 database that only this machine reaches', async () => {
    const { url } = await start();
    const [settings] = await query(
      url,
      `select current_setting('listen_addresses') as "listenAddresses",
              current_setting('unix_socket_directories') as "socketDirectories",
              current_setting('fsync') as fsync,
              current_setting('synchronous_commit') as "synchronousCommit",
              current_setting('server_encoding') as encoding,
              current_setting('max_connections')::int as "maxConnections",
              upper('straße ä') as upper,
              array_to_string(array(select unnest(array['b', 'B', 'a', 'ä']) order by 1), ' ') as sorted`,
    );
    expect(settings).toEqual({
      listenAddresses: '127.0.0.1',
      socketDirectories: '',
      fsync: 'on',
      synchronousCommit: 'on',
      encoding: 'UTF8',
      maxConnections: 200,
      upper: 'STRAßE Ä',
      sorted: 'B a b ä',
    });
  });

  test('lets nobody in without the password, which only the owner can read', async () => {
    const { url, clusterDirectory } = await start();
    const wrong = new URL(url);
    wrong.password = 'guess';
    await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
    const file = join(clusterDirectory, 'plumbline.password');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(file, 'utf8')).toBe(new URL(url).password);
  });

  test('keeps password, port and data over a stop and a start', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 42 as answer');
    await first.stop();
    expect(await isRunning(first.pid)).toBe(false);
    const second = await start();
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    expect(second.url).toBe(first.url);
  });

  test('stops while sessions are open, and answers every call of stop', async () => {
    const server = await start();
    const sleeping = query(server.url, 'select pg_sleep(600)').catch((error: unknown) => error);
    await vi.waitFor(async () => {
      expect(await query(server.url, `select from pg_stat_activity where query like 'select pg_sleep%'`)).toHaveLength(
        1,
      );
    });
    await Promise.all([server.stop(), server.stop()]);
    expect(await sleeping).toBeInstanceOf(Error);
  });

  test('starts the server again on the same port when it is killed, with all that was committed', async () => {
    const exits: unknown[] = [];
    const server = await start({ onUnexpectedExit: (exit) => exits.push(exit) });
    const { pid: firstPid, port } = server;
    await query(server.url, 'create table kept as select generate_series(1, 1000) as number');
    for (let round = 1; round <= 3; round++) {
      const { pid } = server;
      process.kill(pid, 'SIGKILL');
      await vi.waitFor(async () => {
        expect(server.pid).not.toBe(pid);
        expect(await query(server.url, 'select count(*)::int from kept')).toEqual([{ count: 1000 }]);
      }, 20_000);
      expect(exits).toHaveLength(round);
    }
    expect(exits[0]).toEqual({ code: null, signal: 'SIGKILL' });
    expect(server.pid).not.toBe(firstPid);
    expect(server.port).toBe(port);
  });

  test('stays stopped when it is told to stop while the server is down', async () => {
    const server = await start();
    const { pid } = server;
    process.kill(pid, 'SIGKILL');
    await gone(pid);
    await server.stop();
    await gone(server.pid);
    await expect(query(server.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('ends with the process that started it, also by kill -9', async () => {
    const { holder, pid } = await startElsewhere();
    holder.kill('SIGKILL');
    await gone(pid);
  });

  test('stops what an earlier process left running, then starts with its data', async () => {
    const orphaned = await startElsewhere();
    await query(orphaned.url, 'create table kept as select 42 as answer');
    process.kill(await guardOf(orphaned.pid), 'SIGKILL');
    orphaned.holder.kill('SIGKILL');
    await orphaned.holder.exit;
    expect(await isRunning(orphaned.pid)).toBe(true);
    const server = await start();
    expect(await isRunning(orphaned.pid)).toBe(false);
    expect(await query(server.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test('waits for backends that outlive a killed server, and does not start beside them', async () => {
    const orphaned = await startElsewhere();
    await query(orphaned.url, 'create table kept (number int)');
    const busy = query(
      orphaned.url,
      `do $$ declare until timestamptz := clock_timestamp() + '1 s'; begin while clock_timestamp() < until loop end loop; insert into kept values (1); end $$`,
    );
    await vi.waitFor(async () => {
      expect(await query(orphaned.url, `select from pg_stat_activity where query like 'do $$%'`)).toHaveLength(1);
    });
    process.kill(orphaned.pid, 'SIGKILL');
    orphaned.holder.kill('SIGKILL');
    await orphaned.holder.exit;
    const server = await start();
    expect(await query(server.url, 'select count(*)::int from kept')).toEqual([{ count: 1 }]);
    await busy;
  });

  test.each([
    ['by a stranger that has the pid of a killed server', 'echo $$; exec sleep 600'],
    ['by a killed server that nobody reaps, as in containers', 'sleep 0 & echo $!; exec sleep 600'],
  ])('is not kept from starting %s', async (_, script) => {
    const { clusterDirectory, stop } = await start();
    await stop();
    const { uid, gid } = await stat(clusterDirectory);
    const stranger = spawn('sh', ['-c', script], { uid, gid, stdio: ['ignore', 'pipe', 'ignore'] });
    const [printed]: unknown[] = await once(stranger.stdout, 'data');
    const pidFile = join(clusterDirectory, 'postmaster.pid');
    await writeFile(pidFile, `${String(printed).trim()}\n${clusterDirectory}\n1\n1\n\n127.0.0.1\n  1 1\nready   \n`);
    await chown(pidFile, uid, gid);
    const server = await start();
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(await isRunning(stranger.pid ?? 0)).toBe(true);
    stranger.kill();
  });

  test('begins anew when making the cluster was interrupted', async () => {
    const holder = startChild(HOLDER, [dataDir]);
    children.push(holder);
    const home = join(dataDir, 'postgres');
    await vi.waitFor(async () => {
      const workshop = (await readdir(home)).find((name) => name.startsWith('new-')) ?? 'none yet';
      expect(await readdir(join(home, workshop, 'data'))).toContain('base');
    }, 20_000);
    holder.kill('SIGKILL');
    await holder.exit;
    const server = await start();
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect((await readdir(home)).filter((name) => name.startsWith('new-'))).toEqual([]);
  });

  test('runs where npm was not allowed to run install scripts', async () => {
    const checkout = join(dataDir, 'checkout');
    await copyCheckout(checkout);
    const { url } = await startElsewhere(checkout);
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('refuses a cluster that another process runs, with its pid', async () => {
    const { holder } = await startElsewhere();
    await expect(start()).rejects.toThrow(`in use by process ${holder.pid}`);
  });

  test('refuses a cluster of another major version, and says what to do', async () => {
    const { clusterDirectory, stop } = await start();
    await stop();
    await writeFile(join(clusterDirectory, 'PG_VERSION'), '9\n');
    await expect(start()).rejects.toThrow(
      /was made by PostgreSQL 9, and the one here is \d+; dump it with the old one/,
    );
  });

  test('says what PostgreSQL says when it does not start, and can be tried again', async () => {
    await expect(start({ settings: { shared_buffers: 'much' } })).rejects.toThrow(
      /PostgreSQL does not start: .*invalid value for parameter "shared_buffers": "much"/,
    );
    const { url } = await start();
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('refuses a port that is taken when it was asked for that one', async () => {
    const { port } = new URL((await startElsewhere()).url);
    const other = await enterableFolder();
    await expect(start({ dataDir: other, port: Number(port) })).rejects.toThrow(/Address already in use/);
    await rm(other, { recursive: true });
  });
});
