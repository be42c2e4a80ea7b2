import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { connect, isTransient, type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { openSession, sessionsBeside } from '#adapters/postgres/session.ts';
import { NoTurn } from '#adapters/postgres/turns.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const NAME = { applicationName: 'session test' };

let database: TestDatabase;
let admin: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = connect(database.url, { applicationName: 'admin' });
});

afterAll(async () => {
  await admin.end();
  await database.drop();
});

async function pidOf(sql: Sql): Promise<number> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

async function killed(pid: number): Promise<void> {
  await admin`select pg_terminate_backend(${pid}, 5000)`;
}

async function rejection(promise: Promise<unknown> | (() => Promise<unknown>)): Promise<unknown> {
  try {
    return { value: await (typeof promise === 'function' ? promise() : promise) };
  } catch (error) {
    return error;
  }
}

/** The driver waits for ever for connections that were lost under a statement. */
async function end(sql: Sql): Promise<void> {
  await sql.end({ timeout: 1 });
}

describe('a session', () => {
  test('keeps its state from statement to statement', async () => {
    const { sql, close } = openSession(database.url, NAME);
    await sql`begin`;
    await sql`set local search_path = nowhere`;
    const [row] = await sql`show search_path`;
    expect(row).toEqual({ search_path: 'nowhere' });
    await close();
  });

  test('whose connection is cut is lost: it says so once, and runs nothing any more, not even elsewhere', async () => {
    let losses = 0;
    const { promise: lost, resolve } = Promise.withResolvers<void>();
    const session = openSession(database.url, {
      ...NAME,
      onLost() {
        losses += 1;
        resolve();
      },
    });
    const { sql } = session;
    await sql`begin`;
    await killed(await pidOf(sql));
    await lost;
    for (const statement of [() => sql`rollback`, () => sql.unsafe('select 1')]) {
      const error = await rejection(statement);
      expect(isTransient(error), String(error)).toBe(true);
      expect(toCallerError(error, 'session')).toMatchObject({ reason: 'ServiceUnavailable' });
    }
    expect([session.isLost, losses]).toEqual([true, 1]);
    await session.close();
    expect(await admin`select from pg_stat_activity where application_name = ${NAME.applicationName}`).toHaveLength(0);
  });

  test('that is cut in the middle of a statement rejects it', async () => {
    const session = openSession(database.url, NAME);
    const pid = await pidOf(session.sql);
    const waiting = rejection(session.sql`select pg_sleep(60)`);
    await killed(pid);
    expect(isTransient(await waiting)).toBe(true);
    await session.close();
  });

  test('that cannot connect is lost, with an error that calls for another attempt', async () => {
    const session = openSession('postgres://nobody@127.0.0.1:1/none', NAME);
    expect(isTransient(await rejection(session.sql`select 1`))).toBe(true);
    await expect.poll(() => session.isLost).toBe(true);
    await session.close();
  });
});

describe('sessions beside a pool', () => {
  test('are no more than allowed; the next waits for one to close, and is told when none does', async () => {
    const sessions = sessionsBeside(admin, { maxOpen: 2, maxPerOwner: 2, patienceMs: 200 });
    const [first, second] = [await sessions.open('a'), await sessions.open('a')];
    expect(await rejection(sessions.open('b'))).toBeInstanceOf(NoTurn);
    const third = sessions.open('b');
    await first.close();
    await first.close();
    await expect((await third).sql`select 1 as one`).resolves.toEqual([{ one: 1 }]);
    expect(await rejection(sessions.open('a'))).toBeInstanceOf(NoTurn);
    await Promise.all([second.close(), (await third).close()]);
    await (await sessions.open('a')).close();
  });

  test('of one owner leave room for others, however many of its wait', async () => {
    const sessions = sessionsBeside(admin, { maxOpen: 3, maxPerOwner: 2, patienceMs: 60_000 });
    const greedy = [await sessions.open('a'), await sessions.open('a')];
    const queued = sessions.open('a');
    const modest = await sessions.open('b');
    await greedy[0]?.close();
    await Promise.all([greedy[1]?.close(), modest.close(), (await queued).close()]);
  });
});

describe('a pool, also behind a network that fails', () => {
  let proxy: TcpProxy;
  let url: string;

  beforeAll(async () => {
    const target = new URL(database.url);
    proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) });
    target.port = String(proxy.port);
    url = target.href;
  });

  afterAll(() => proxy.stop());

  test('gives up connections that owe an answer for too long, and works when the network does', async () => {
    const sql = connect(url, { applicationName: 'stalled', maxConnections: 3, statementTimeoutMs: 300 });
    await sql`select 1`;
    proxy.stall();
    const begin = performance.now();
    const errors = await Promise.all(Array.from({ length: 3 }, () => rejection(sql`select 1`)));
    expect(errors.map(isTransient)).toEqual([true, true, true]);
    expect(performance.now() - begin).toBeLessThan(3_000);
    await proxy.resume();
    await expect(sql`select 1 as one`).resolves.toEqual([{ one: 1 }]);
    await end(sql);
  });

  test('leaves idle connections and long rests between statements alone', async () => {
    const sql = connect(url, { applicationName: 'idle', maxConnections: 1, statementTimeoutMs: 50 });
    const before = await pidOf(sql);
    // Longer than it waits for an answer: 50 ms and the margin of a second.
    await admin`select pg_sleep(1.3)`;
    expect(await pidOf(sql)).toBe(before);
    await end(sql);
  });

  test('ends statements that take too long, and keeps their connection', async () => {
    const sql = connect(url, { applicationName: 'slow', maxConnections: 1, statementTimeoutMs: 100 });
    const before = await pidOf(sql);
    const error = await rejection(sql`select pg_sleep(30)`);
    expect(toCallerError(error, 'Widget "x"')).toMatchObject({ reason: 'ServiceUnavailable' });
    expect(await pidOf(sql)).toBe(before);
    await end(sql);
  });

  test('a connection that breaks in the middle of an answer leaves nothing of it to the next statement', async () => {
    const target = new URL(database.url);
    let isCutting = false;
    const cutting: TcpProxy = await startTcpProxy({
      host: target.hostname,
      port: Number(target.port),
      answers: (toClient) => (bytes) => {
        toClient(bytes);
        if (isCutting && bytes.length > 1_000) setImmediate(() => cutting.cut());
      },
    });
    target.port = String(cutting.port);
    const sql = connect(target.href, { applicationName: 'broken answers', maxConnections: 1 });
    for (let round = 0; round < 10; round++) {
      isCutting = true;
      const error = await rejection(sql`select n, repeat('x', 500) from generate_series(1, 100000) n`);
      expect(isTransient(error), String(error)).toBe(true);
      isCutting = false;
      await expect(sql`select ${round}::int as round`).resolves.toEqual([{ round }]);
    }
    await end(sql);
    await cutting.stop();
  });

  test('tells statements that wait for a connection for 3 s, whatever becomes of the others', async () => {
    const sql = connect(url, { applicationName: 'full', maxConnections: 1, statementTimeoutMs: 3_000 });
    await sql`select 1`;
    proxy.stall();
    // Given up after 4 s.
    const stuck = rejection(sql`select 1`);
    for (const error of await Promise.all([rejection(sql`select 1`), rejection(sql`select 1`)])) {
      expect(error).toMatchObject({ code: 'CONNECT_TIMEOUT' });
      expect(toCallerError(error, 'x')).toMatchObject({ reason: 'ServiceUnavailable' });
    }
    expect(await stuck).toMatchObject({ code: 'ETIMEDOUT' });
    await proxy.resume();
    await expect(sql`select 1 as one`).resolves.toEqual([{ one: 1 }]);
    await end(sql);
    expect(await rejection(sql`select 1`)).toMatchObject({ code: 'CONNECTION_ENDED' });
  });

  test('lends no connection for a transaction', () => {
    const sql = connect(database.url, { applicationName: 'refusing' });
    expect(() => sql.begin(() => [])).toThrow('open a session');
    expect(() => sql.reserve()).toThrow('open a session');
  });

  test.each(['cut', 'hangUp', 'refuse'] as const)('is told at once when connections %s', async (fault) => {
    const sql = connect(url, { applicationName: fault, maxConnections: 2 });
    await sql`select 1`;
    await proxy[fault]();
    const begin = performance.now();
    const errors = await Promise.all(Array.from({ length: 5 }, () => rejection(sql`select 1`)));
    if (fault !== 'cut') expect(errors.map(isTransient)).toEqual(Array(5).fill(true));
    expect(performance.now() - begin).toBeLessThan(2_000);
    await proxy.resume();
    await expect(sql`select 1 as one`).resolves.toEqual([{ one: 1 }]);
    await end(sql);
  });
});
