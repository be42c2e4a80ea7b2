import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { rotatingBox } from '#adapters/ciphers/rotating-box.ts';
import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { fileCursorKeyAdmin, fileCursorKeys } from '#adapters/node/cursor-key-file.ts';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { postgresCursorKeyAdmin, postgresCursorKeys } from '#adapters/postgres/cursor-keys.ts';
import { openSession } from '#adapters/postgres/session.ts';
import { type CursorKeyAdmin, type CursorKeys, RETIRE_AFTER_MS } from '#core/ports/cursor-keys.ts';
import { StatusError } from '#core/status-error.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';

interface Place {
  readonly keys: CursorKeys;
  readonly admin: CursorKeyAdmin;
  close(): Promise<void>;
}

const PLAINTEXT = Uint8Array.of(1, 2, 3);

describe.each([
  ['the database', inDatabase],
  ['a file', inFile],
])('keys in %s', (_, open) => {
  let place: Place;
  let stopping: AbortController;

  beforeEach(async () => {
    place = await open();
    stopping = new AbortController();
  });

  afterEach(async () => {
    vi.useRealTimers();
    stopping.abort();
    await place.close();
  });

  test('the first one seals at once, and all servers get the same', async () => {
    await place.admin.rotate(60_000);
    const rings = await Promise.all([place.keys.read(), place.keys.read()]);
    expect(rings[0]).toEqual(rings[1]);
    expect([rings[0]?.keys.length, rings[0]?.sealingId]).toEqual([1, 0]);
  });

  test('a new one can be read at once, and seals when its time has come', async () => {
    await place.admin.rotate(0);
    await place.admin.rotate(60_000);
    const before = await place.keys.read();
    expect([before.keys.map(({ id }) => id), before.sealingId]).toEqual([[0, 1], 0]);
    expect(before.keys[1]?.key).toHaveLength(32);
    expect(before.keys[1]?.key).not.toEqual(before.keys[0]?.key);
    await place.admin.rotate(-1);
    expect((await place.keys.read()).sealingId).toBe(2);
    expect((await place.admin.list()).map(({ id }) => id)).toEqual([0, 1, 2]);
  });

  test('one is retired once a newer one has sealed for a while, and its id is never used again', async () => {
    await place.admin.rotate(0);
    expect(await place.admin.retire(0)).toBe('in use');
    await place.admin.rotate(60_000);
    expect([await place.admin.retire(0), await place.admin.retire(1)]).toEqual(['in use', 'in use']);
    await place.admin.rotate(-RETIRE_AFTER_MS - 1);
    expect([await place.admin.retire(1), await place.admin.retire(0)]).toEqual(['retired', 'retired']);
    expect([await place.admin.retire(0), await place.admin.retire(7)]).toEqual(['unknown', 'unknown']);
    expect(await place.admin.retire(2)).toBe('in use');
    expect((await place.admin.rotate(0))?.id).toBe(3);
  });

  test('there are 128 at most, until old ones are retired', async () => {
    for (let count = 0; count < 128; count++) expect(await place.admin.rotate(-60_000)).toBeDefined();
    expect(await place.admin.rotate(0)).toBeUndefined();
    expect((await place.keys.read()).keys).toHaveLength(128);
    expect(await place.admin.retire(0)).toBe('retired');
    expect((await place.admin.rotate(0))?.id).toBe(128);
  });

  test('a renewal leaves one new key, with an id that none had', async () => {
    for (let count = 0; count < 3; count++) await place.admin.rotate(-60_000);
    const before = await place.keys.read();
    const { id } = await place.admin.renew();
    const { keys, sealingId } = await place.keys.read();
    expect([keys.map((key) => key.id), sealingId]).toEqual([[id], id]);
    expect(id).toBeGreaterThan(2);
    const old = secretBox(before.keys).seal(PLAINTEXT, 'x');
    expect(secretBox(keys).open(old, 'x')).toBe('retired');
    expect((await place.admin.rotate(0))?.id).toBe(id + 1);
  });

  test('servers follow a rotation without a restart, and no token of one is ever refused by another', async () => {
    await place.admin.rotate(0);
    const seen: number[][] = [];
    const boxes = await Promise.all(
      [0, 1].map(() =>
        rotatingBox(place.keys, stopping.signal, {
          onChange: ({ keys, sealingId }) => void seen.push([...keys.map(({ id }) => id), sealingId]),
        }),
      ),
    );
    const first = boxes[0]?.seal(PLAINTEXT, 'x') ?? '';
    await place.admin.rotate(5_000);
    await vi.waitFor(
      () => {
        for (const box of boxes) {
          const token = box.seal(PLAINTEXT, 'x');
          for (const other of boxes) {
            expect(other.open(token, 'x')).toEqual(PLAINTEXT);
            expect(other.open(first, 'x')).toEqual(PLAINTEXT);
          }
        }
        expect(seen).toEqual([
          [0, 1, 0],
          [0, 1, 0],
          [0, 1, 1],
          [0, 1, 1],
        ]);
      },
      { timeout: 20_000, interval: 20 },
    );
    await place.admin.rotate(-RETIRE_AFTER_MS - 1);
    expect(await place.admin.retire(0)).toBe('retired');
    await vi.waitFor(() => expect(boxes.map((box) => box.open(first, 'x'))).toEqual(['retired', 'retired']), 10_000);
  });

  test('while they cannot be read those from before stay, and what does not open is not called malformed', async () => {
    await place.admin.rotate(0);
    const errors: unknown[] = [];
    let isAway = false;
    const keys: CursorKeys = { read: () => (isAway ? Promise.reject(new Error('away')) : place.keys.read()) };
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const box = await rotatingBox(keys, stopping.signal, { onError: (error) => void errors.push(error) });
    const token = box.seal(PLAINTEXT, 'x');
    isAway = true;
    await vi.advanceTimersByTimeAsync(9_000);
    expect([box.open('forged', 'x'), box.open(token, 'x')]).toEqual(['malformed', PLAINTEXT]);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(box.open(token, 'x')).toEqual(PLAINTEXT);
    expect(() => box.open('forged', 'x')).toThrow(StatusError);
    expect(() => box.open('forged', 'x')).toThrow('cannot be read at present');
    expect(errors).toEqual([new Error('away')]);
    isAway = false;
    await vi.advanceTimersByTimeAsync(2_000);
    await vi.waitFor(() => expect(box.open('forged', 'x')).toBe('malformed'), 10_000);
  });
});

test('the first servers of a database agree on one key', async () => {
  const database = await createTestDatabase();
  const pools = Array.from({ length: 5 }, () => connect(database.url, { applicationName: 'test' }));
  const rings = await Promise.all(pools.map((sql) => postgresCursorKeys(sql, randomBytes).read()));
  expect(new Set(rings.map(({ keys }) => JSON.stringify(keys))).size).toBe(1);
  await Promise.all(pools.map((sql) => sql.end()));
  await database.drop();
});

test('of renewals that meet, and a rotation among them, the last one leaves one key, and no id is used twice', async () => {
  const { url, drop } = await createTestDatabase();
  const sessions = Array.from({ length: 4 }, () =>
    openSession(url, { applicationName: 'operator', role: 'plumbline_migrator' }),
  );
  const [holder, ...operators] = sessions.map(({ sql }) => sql);
  const [one, other, third] = operators.map((sql) => postgresCursorKeyAdmin(sql, randomBytes));
  if (!holder || !one || !other || !third) throw new Error('too few sessions');
  await third.rotate(0);
  const watcher = connect(url, { applicationName: 'watcher', maxConnections: 1 });
  const { calls } = await holder.begin(async (transaction) => {
    await transaction`select from plumbline.cursor_key for update`;
    const first = one.renew();
    await untilLockWaits(watcher, 1);
    const second = other.renew();
    await untilLockWaits(watcher, 2);
    const rotation = third.rotate(0);
    await Promise.race([rotation, untilLockWaits(watcher, 3)]);
    return { calls: Promise.all([first, second, rotation]) };
  });
  const ids = (await calls).map((key) => key?.id ?? -1);
  expect(new Set([0, ...ids]).size).toBe(4);
  const [first = 0, second = 0, rotated = 0] = ids;
  const last = Math.max(first, second);
  expect((await one.list()).map(({ id }) => id)).toEqual(rotated > last ? [last, rotated] : [last]);
  await Promise.all([...sessions.map((session) => session.close()), watcher.end()]);
  await drop();
});

async function untilLockWaits(sql: Sql, count: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const waiting = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      expect(waiting.length).toBeGreaterThanOrEqual(count);
    },
    { timeout: 10_000, interval: 5 },
  );
}

async function inDatabase(): Promise<Place> {
  const database = await createTestDatabase();
  const server = connect(database.url, { applicationName: 'test', maxConnections: 2, role: 'plumbline_worker' });
  const operator = openSession(database.url, { applicationName: 'test', role: 'plumbline_migrator' });
  return {
    keys: postgresCursorKeys(server, randomBytes),
    admin: postgresCursorKeyAdmin(operator.sql, randomBytes),
    async close() {
      await Promise.all([server.end(), operator.close()]);
      await database.drop();
    },
  };
}

async function inFile(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-keys-'));
  const path = join(folder, 'keys');
  return {
    keys: fileCursorKeys(path),
    admin: fileCursorKeyAdmin(path),
    close: () => rm(folder, { recursive: true }),
  };
}
