import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { postgresDatabaseServers } from '#adapters/postgres/servers/database-servers.ts';
import {
  type DatabaseServer,
  type DatabaseServers,
  ServerBusy,
  ServerUnavailable,
  type ServerWork,
} from '#core/ports/database-servers.ts';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';

const SILENCE_MS = 400;

let world: DatabaseWorld;
let servers: DatabaseServers;
const opened: DatabaseServer[] = [];

beforeAll(async () => {
  world = await openDatabaseWorld();
  servers = postgresDatabaseServers(new Map([['local', world.url]]), { silenceMs: SILENCE_MS });
});

afterAll(async () => {
  await Promise.all(opened.map((server) => server.close()));
  await world.close();
});

function open(work: Partial<ServerWork> = {}, from: DatabaseServers = servers): DatabaseServer {
  const signal = new AbortController().signal;
  const server = from.open('local', { uid: randomUUID(), fencingToken: 7n, signal, ...work });
  opened.push(server);
  return server;
}

async function failureOf(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => expect.fail('it succeeded'),
    (error: unknown) => error as Error,
  );
}

describe('a piece of work', () => {
  test('shows its object and its fencing token on the server', async () => {
    const uid = randomUUID();
    const server = open({ uid, fencingToken: 4711n });
    await server.databases.read('postgres');
    expect(
      await world.sql(`select from pg_stat_activity where application_name = 'plumbline ${uid} 4711'`),
    ).toHaveLength(1);
    await server.close();
    expect(await world.sql(`select from pg_stat_activity where application_name like 'plumbline ${uid}%'`)).toEqual([]);
  });

  test('keeps others from the same object until it is closed', async () => {
    const uid = randomUUID();
    const first = open({ uid });
    await first.databases.read('postgres');
    const refused = await failureOf(open({ uid }).databases.read('postgres'));
    expect(refused).toBeInstanceOf(ServerBusy);
    expect(refused.message).toBe(
      'database server "local" still has a session of an earlier pass of this object, which it ends within 0.4 s; it is tried again',
    );
    expect(await open().databases.read('postgres')).toBeDefined();
    await first.close();
    expect(await open({ uid }).databases.read('postgres')).toBeDefined();
  });

  test('that falls silent is ended by the server, and cannot write when it wakes up after its successor began', async () => {
    const uid = randomUUID();
    const name = `t${uid.slice(0, 8)}_frozen`;
    const frozen = open({ uid, fencingToken: 1n });
    expect(await frozen.roles.read(name)).toBeUndefined();
    // The process is frozen: it says nothing, and its socket stays open.
    const successor = await vi.waitFor(
      async () => {
        const server = open({ uid, fencingToken: 2n });
        await server.roles.read(name);
        return server;
      },
      { timeout: 10_000, interval: 50 },
    );
    const refused = await failureOf(frozen.roles.create({ name, comment: 'from the grave' }));
    expect(refused).toBeInstanceOf(ServerUnavailable);
    expect(await successor.roles.read(name)).toBeUndefined();
  });

  test('keeps its locks as long as a session of it inside a database lives', async () => {
    const uid = randomUUID();
    const server = open({ uid });
    const inside = server.inside('plumbline');
    await inside.extensions();
    for (const started = performance.now(); performance.now() - started < SILENCE_MS * 2;) {
      await inside.extensions();
      await new Promise((resolve) => setTimeout(resolve, SILENCE_MS / 10));
    }
    expect(await failureOf(open({ uid }).databases.read('postgres'))).toBeInstanceOf(ServerBusy);
    await inside.extensions();
  });

  test('waits for its turn where several objects share something', async () => {
    const turn = `role ${randomUUID()}`;
    const first = open({ turn });
    await first.databases.read('postgres');
    const waiting = open({ turn }).databases.read('postgres');
    await vi.waitFor(async () => {
      const waits = await world.sql(`select from pg_stat_activity where wait_event = 'advisory'`);
      expect(waits).not.toEqual([]);
    });
    await first.close();
    expect(await waiting).toBeDefined();
  });

  test('ends at once when it is told to', async () => {
    const abort = new AbortController();
    const server = open({ signal: abort.signal });
    await server.databases.read('postgres');
    abort.abort(new Error('the lease is lost'));
    expect((await failureOf(server.databases.read('postgres'))).message).toBe('the lease is lost');
    expect((await failureOf(open({ signal: abort.signal }).databases.read('postgres'))).message).toBe(
      'the lease is lost',
    );
  });
});

describe('what goes wrong', () => {
  test('names the server as it is configured, and neither its address nor its password', async () => {
    const port = '1';
    const away = postgresDatabaseServers(new Map([['local', `postgres://jane:hunter2@127.0.0.1:${port}/postgres`]]));
    const error = await failureOf(open({}, away).databases.read('postgres'));
    expect(error).toBeInstanceOf(ServerUnavailable);
    expect(error.message).toBe('database server "local" cannot be reached (ECONNREFUSED); it is tried again');
    const wrong = new URL(world.url);
    wrong.password = 'hunter2';
    const denied = await failureOf(
      open({}, postgresDatabaseServers(new Map([['local', wrong.href]]))).databases.read('postgres'),
    );
    expect(denied.message).toMatch(/^database server "local": password authentication failed for user/);
    expect(denied.message).not.toContain('hunter2');
  });

  test('a server that is not configured is told with those that are', () => {
    const signal = new AbortController().signal;
    expect(() => servers.open('nowhere', { uid: 'x', fencingToken: 1n, signal })).toThrow(
      'no database server "nowhere" is configured; there are: local',
    );
  });
});

describe('a database whose owner is hostile', () => {
  test('has no say in what is done in it', async () => {
    const tenant = await world.newTenant();
    await tenant.put(world.database, 'trap', {});
    await tenant.settle(world.database, 'trap');
    const name = `${tenant.tenant}_trap`;
    const owner = await world.enter(tenant, 'trap');
    await owner.unsafe(`
      create table caught (by text);
      grant all on caught to public;
      create function spring(name, text) returns boolean language plpgsql as
        $$ begin insert into public.caught values (current_user); return true; end $$;
      create operator public.= (leftarg = name, rightarg = text, function = spring);
      create function public.pg_has_role(oid, text) returns boolean language sql as 'select public.spring(null, null)';
      create view public.pg_class as select * from pg_catalog.pg_class;
      create view public.pg_extension as select 'none'::name as extname;`);
    await owner.unsafe(`alter database "${name}" set search_path = public, pg_catalog`);
    await owner.unsafe(`alter database "${name}" set default_transaction_read_only = on`);
    await owner.end();
    await tenant.put(world.database, 'trap', { extensions: ['citext'] });
    expect(await tenant.settle(world.database, 'trap')).toMatchObject({ result: 'done', error: undefined });
    await tenant.put(world.binding, 'a', { database: 'trap', subject: 'ann', role: 'writer' });
    expect(await tenant.settle(world.binding, 'a')).toMatchObject({ result: 'done', error: undefined });
    expect(await world.sql('select * from public.caught', name)).toEqual([]);
    await tenant.remove(world.binding, 'a');
    expect(await tenant.settle(world.binding, 'a')).toMatchObject({ result: 'finalized' });
  });
});
