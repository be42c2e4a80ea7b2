/** Programs for cron, and a database that begins to start up while they connect to it. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChild } from '#test/support/child.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

test.each(['publish', 'reconcile'])(
  '%s says so in one line, whichever of its connections it is that is refused',
  async (program) => {
    let taken = 0;
    for (; ; taken += 1) {
      const { code, told } = await runBehind(program, taken);
      if (code === 0) break;
      expect([code, told], `after ${taken} connections`).toEqual([
        1,
        expect.stringMatching(/^the database .*: the database system is starting up$/),
      ]);
    }
    expect(taken).toBeGreaterThan(3);
  },
  60_000,
);

/** Against a server that takes so many connections before it says that it starts up. */
async function runBehind(program: string, connections: number): Promise<{ code: number | null; told: string }> {
  const { hostname, port } = new URL(database.url);
  let taken = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    taken += 1;
    if (taken <= connections) {
      const upstream = connect({ host: hostname, port: Number(port) }).on('error', () => socket.destroy());
      socket.pipe(upstream).pipe(socket);
    } else socket.once('data', () => socket.end(startingUp()));
  });
  await once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const url = new URL(database.url);
  url.port = String((server.address() as AddressInfo).port);
  const child = startChild(`infra/local/${program}.ts`, [], { env: { DATABASE_URL: url.href, LOG_FORMAT: 'json' } });
  const { code, errors } = await child.exit;
  server.close();
  // What is logged on the way is another matter.
  const lines = errors.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  return { code, told: lines.join('\n') };
}

/** `ErrorResponse` of PostgreSQL's protocol. */
function startingUp(): Buffer {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0');
  const head = Buffer.from('E\0\0\0\0', 'latin1');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
