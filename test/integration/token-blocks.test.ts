import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { addTokenBlock, listTokenBlocks, removeTokenBlock } from '#adapters/postgres/token-block-list.ts';
import { followTokenBlocks } from '#adapters/postgres/token-blocks.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import type { TokenBlock } from '#core/token-block.ts';
import { startChild } from '#test/support/child.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { refusalOf } from '#test/support/sql-errors.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

const MAX_AGE_MS = 10_000;

let database: TestDatabase;
let proxy: TcpProxy;
let sql: Sql;
let followed: Sql;
let blocks: TokenBlocks;
const lifetime = new AbortController();

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect(database.url, { applicationName: 'test' });
  const url = new URL(database.url);
  proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  followed = connect(url.href, {
    applicationName: 'test blocks',
    maxConnections: 1,
    role: 'plumbline_worker',
    statementTimeoutMs: 2_000,
  });
  blocks = await followTokenBlocks(followed, lifetime.signal);
});

afterAll(async () => {
  lifetime.abort();
  await followed.end({ timeout: 1 });
  await proxy.stop();
  await sql.end();
  await database.drop();
});

async function add(block: TokenBlock, forSeconds?: number): Promise<void> {
  await addTokenBlock(sql, { block, reason: 'a test', forSeconds, by: undefined });
}

function isBlocked(subject: string): boolean {
  return blocks.known.blockedOf({ subject }) === 'everything';
}

async function untilBlocked(subject: string, blocked = true): Promise<void> {
  await expect.poll(() => isBlocked(subject), { timeout: 5_000, interval: 20 }).toBe(blocked);
}

describe('a process that follows the blocks', () => {
  test('hears of new ones and of removed ones, and keeps the same set while nothing changes', async () => {
    await add({ subject: 'ann' });
    await untilBlocked('ann');
    const { known } = blocks;
    await expect.poll(() => blocks.ageMs, { timeout: 5_000, interval: 10 }).toBeGreaterThan(500);
    await expect.poll(() => blocks.ageMs, { timeout: 5_000, interval: 10 }).toBeLessThan(500);
    expect(blocks.known).toBe(known);
    expect(await blocks.current()).toBe(known);
    await removeTokenBlock(sql, { subject: 'ann' });
    await untilBlocked('ann', false);
  });

  test('hears of them when its connections were cut', async () => {
    proxy.cut();
    await add({ subject: 'bob' });
    await untilBlocked('bob');
  });

  test('sees one end whose time is over, which nobody tells', async () => {
    await add({ subject: 'carl' }, 1);
    await untilBlocked('carl');
    await untilBlocked('carl', false);
  });

  test('lets nobody in when it could not read them for ten seconds, and everybody when it can again', async () => {
    await add({ subject: 'dora' });
    await untilBlocked('dora');
    proxy.stall();
    await expect.poll(() => blocks.ageMs, { timeout: 30_000 }).toBeGreaterThan(MAX_AGE_MS);
    await expect(blocks.current()).rejects.toMatchObject({ reason: 'ServiceUnavailable', code: 503 });
    // What it knew it still knows.
    expect(isBlocked('dora')).toBe(true);
    await removeTokenBlock(sql, { subject: 'dora' });
    await proxy.resume();
    await expect
      .poll(async () => (await blocks.current().catch(() => undefined))?.blockedOf({ subject: 'dora' }), {
        timeout: 15_000,
      })
      .toEqual([]);
  });
});

describe('the list of blocks', () => {
  test('has each block once, with its newest reason and end', async () => {
    await add({ subject: 'eve', tenant: 'acme' }, 3_600);
    await addTokenBlock(sql, {
      block: { subject: 'eve', tenant: 'acme' },
      reason: 'another',
      forSeconds: undefined,
      by: 'the operator',
    });
    const found = (await listTokenBlocks(sql)).filter(({ subject }) => subject === 'eve');
    expect(found).toMatchObject([
      { tenant: 'acme', reason: 'another', by: 'the operator', until: null, tokenId: null },
    ]);
  });

  test.for([
    ['nobody', "insert into plumbline.token_block (reason) values ('x')"],
    [
      'a subject and a token at once',
      "insert into plumbline.token_block (subject, token_id, reason) values ('a', 'b', 'x')",
    ],
    [
      'a tenant that is no name',
      "insert into plumbline.token_block (subject, tenant, reason) values ('a', 'A b', 'x')",
    ],
    ['without a reason', "insert into plumbline.token_block (subject, reason) values ('a', '')"],
  ] as const)('takes no block of %s', async ([, statement]) => {
    expect((await refusalOf(sql.unsafe(statement))).code).toBe('23514');
  });
});

describe('npm run block, unblock and blocks', () => {
  async function run(name: string, ...args: readonly string[]): Promise<{ code: number | null; text: string }> {
    const child = startChild(`infra/local/${name}.ts`, args, { env: { DATABASE_URL: database.url } });
    const lines: string[] = [];
    for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) lines.push(line);
    const { code, errors } = await child.exit;
    return { code, text: errors + lines.join('\n') };
  }

  test('make a block, list it with who made it and why, and remove it', async () => {
    const made = await run('block', '--subject', 'frank', '--tenant', 'acme', '--reason', 'left', '--for', '8h');
    expect(made).toEqual({ code: 0, text: 'subject "frank" in tenant acme is blocked; servers obey within 5 s' });
    const token = await run('block', '--token-id', 'one-token', '--reason', 'leaked');
    expect(token).toEqual({ code: 0, text: 'token "one-token" is blocked; servers obey within 5 s' });
    expect(blocks.known.blockedOf({ subject: 'any', tokenId: 'one-token' })).toBe('everything');
    const { text } = await run('blocks');
    expect(text).toMatch(/ frank +\| +\| acme +\| left +\| \S+ +\| 20\S+Z \| 20\S+Z/);
    expect(text).toMatch(/ +\| one-token \| everything \| leaked /);
    const removed = await run('unblock', '--subject', 'frank', '--tenant', 'acme');
    expect(removed).toEqual({
      code: 0,
      text: 'subject "frank" in tenant acme is not blocked any more; servers obey within 5 s',
    });
    expect((await run('blocks')).text).not.toContain('frank');
    expect(await run('unblock', '--subject', 'frank')).toEqual({
      code: 1,
      text: 'subject "frank" is not blocked; npm run -s blocks lists what is\n',
    });
  });

  test.for([
    ['block', ['--reason', 'x'], 'one of --subject and --token-id is needed'],
    ['block', ['--subject', 'a', '--token-id', 'b', '--reason', 'x'], 'one of --subject and --token-id is needed'],
    ['block', ['--subject', 'a'], '--reason is missing'],
    ['block', ['--subject', ' ', '--reason', 'x'], '--subject is " "; allowed: 1 to 253 characters'],
    ['block', ['--subject', 'a', '--reason', 'x', '--tenant', 'Acme'], '--tenant is "Acme"; a name must'],
    [
      'block',
      ['--subject', 'a', '--reason', 'x', '--for', 'ever'],
      '--for is "ever"; allowed: a number and s, m, h or d',
    ],
    ['block', ['--subject', 'a', '--because', 'x'], "Unknown option '--because'"],
    ['unblock', ['--subject', 'a', '--reason', 'x'], 'a block is removed without more'],
  ] as const)('%s refuses %j', async ([name, args, complaint]) => {
    const { code, text } = await run(name, ...args);
    expect(text.startsWith(complaint), text).toBe(true);
    expect(text).toContain(`usage: npm run -s ${name} -- --subject`);
    expect(code).toBe(1);
  });
});
