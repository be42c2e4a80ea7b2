/** Statements with parameters on connections that have prepared nothing: what has reached the server before any answer came. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { connect, type ConnectOptions, type Sql } from '#adapters/postgres/client.ts';
import { framed } from '#adapters/postgres/pool.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

let database: TestDatabase;
let proxy: TcpProxy;
let direct: Sql;
/** What the server says while it is held back; undefined: it is passed on. */
let held: (() => void)[] | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  const { hostname, port } = new URL(database.url);
  proxy = await startTcpProxy({
    host: hostname,
    port: Number(port),
    answers: (toClient) => (bytes) => {
      if (held) held.push(() => toClient(bytes));
      else toClient(bytes);
    },
  });
  direct = connect(database.url, { applicationName: 'test' });
  await direct`create table flight (id int4, tags text[])`;
});

afterAll(async () => {
  await direct?.end();
  await proxy?.stop();
  await database?.drop();
});

beforeEach(async () => {
  await direct`truncate flight`;
});

async function through(options: Partial<ConnectOptions>): Promise<Sql> {
  const url = new URL(database.url);
  url.port = String(proxy.port);
  const sql = connect(url.href, { applicationName: 'flights', ...options });
  await sql`select 1`;
  return sql;
}

function release(): void {
  const answers = held ?? [];
  held = undefined;
  for (const answer of answers) answer();
}

async function untilThereAre(count: number): Promise<void> {
  for (;;) {
    const [row] = await direct`select count(*)::int4 as count from flight where tags = ${['a', 'b"c']}::text[]`;
    if (row?.['count'] === count) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const insert = (sql: Sql, id: number): Promise<unknown> =>
  sql`insert into flight values (${id}, ${['a', 'b"c']}::text[])`.execute();

test.each(['preparing', 'any', undefined] as const)(
  'a transaction of one statement is committed before anything of it is answered, pooler: %s',
  async (pooler) => {
    const sql = await through(pooler === undefined ? {} : { pooler });
    held = [];
    const inserted = insert(framed(sql, 'begin')!, 1);
    await untilThereAre(1);
    release();
    await inserted;
    await sql.end();
  },
);

test('a pipelined pool sends each statement over its one connection, whatever is not answered yet', async () => {
  const sql = await through({ isPipelined: true });
  held = [];
  const inserted = Promise.all([insert(sql, 1), insert(framed(sql, 'begin')!, 2), insert(sql, 3)]);
  const refused = sql`select 1 / ${0}::int4`.catch(String);
  const last = insert(sql, 4);
  await untilThereAre(4);
  expect(await direct`select 1 from pg_stat_activity where application_name = 'flights'`).toHaveLength(1);
  release();
  await Promise.all([inserted, last]);
  expect(await refused).toContain('division by zero');
  await sql.end();
});

test.each(['preparing', 'any'] as const)('parameters of all types arrive as they are, pooler: %s', async (pooler) => {
  const values = {
    text: ['it\'s "1"\\', (sql: Sql, value: string) => sql`select ${value}::text as value`],
    integer: [-7, (sql: Sql, value: number) => sql`select ${value}::int4 as value`],
    float: [0.1, (sql: Sql, value: number) => sql`select ${value}::float8 as value`],
    bigint: [2n ** 62n, (sql: Sql, value: bigint) => sql`select ${value}::int8 as value`],
    boolean: [false, (sql: Sql, value: boolean) => sql`select ${value}::bool as value`],
    null: [null, (sql: Sql, value: null) => sql`select ${value}::int4 as value`],
    time: [new Date(1), (sql: Sql, value: Date) => sql`select ${value}::timestamptz as value`],
    bytes: [Buffer.from([0, 255]), (sql: Sql, value: Buffer) => sql`select ${value}::bytea as value`],
    texts: [['a', '"{,\\'], (sql: Sql, value: string[]) => sql`select ${value}::text[] as value`],
    none: [[], (sql: Sql, value: string[]) => sql`select ${value}::text[] as value`],
    document: [{ a: [1] }, (sql: Sql, value: object) => sql`select ${sql.json(value as never)}::jsonb as value`],
  } as const;
  const sql = connect(database.url, { applicationName: 'test', pooler });
  for (const [name, [value, select]] of Object.entries(values)) {
    // Once as a new statement, and once as it may be prepared.
    for (const _ of ['new', 'known']) {
      const [row] = await select(sql, value as never);
      expect(row, name).toEqual({ value });
    }
  }
  await sql.end();
});
