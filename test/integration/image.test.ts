/**
 * What the image would hold, put together by the lines of its Dockerfile in a folder: files and packages that are missing
 * there are missing in the image. The base image and the user are Docker's own business.
 */

import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Child, startChild } from '#test/support/child.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { createServerLogin } from '#test/support/server-process.ts';
import { startTokenIssuer, type TokenIssuer } from '#test/support/token-issuer.ts';

const instructions = readFileSync('infra/node/Dockerfile', 'utf8')
  .split('\n')
  .filter((line) => /^[A-Z]+ /.test(line))
  .map((line) => ({ word: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1) }));
const last = instructions.slice(instructions.findLastIndex(({ word }) => word === 'FROM'));
const one = (word: string): string => last.find((instruction) => instruction.word === word)?.rest ?? '';

let folder: string;
let database: TestDatabase;
let issuer: TokenIssuer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plumbline-image-'));
  database = await createTestDatabase({ migrated: false });
  issuer = await startTokenIssuer();
  for (const { word, rest } of last) {
    if (word !== 'COPY' || rest.startsWith('--from')) continue;
    const paths = rest.split(' ');
    const target = paths.pop() ?? '';
    for (const path of paths)
      cpSync(path, target.endsWith('/') ? join(folder, target, path) : join(folder, target), { recursive: true });
  }
  linkProductionPackages(join(folder, 'node_modules'));
});

afterAll(async () => {
  await issuer.stop();
  await database.drop();
  rmSync(folder, { recursive: true });
});

/** Those that `npm ci --omit=dev --omit=optional` installs, by the lockfile. */
function linkProductionPackages(target: string): void {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  for (const [path, { dev, optional, devOptional }] of Object.entries<Record<string, boolean>>(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];
    if (name === undefined || dev || optional || devOptional || !existsSync(path)) continue;
    mkdirSync(dirname(join(target, name)), { recursive: true });
    symlinkSync(realpathSync(path), join(target, name));
  }
}

function run(args: readonly string[], env: Record<string, string>): Child {
  const [program = '', ...rest] = args;
  expect(program).toBe('node');
  return startChild(rest[0] ?? '', rest.slice(1), {
    cwd: folder,
    env: {
      NODE_ENV: 'production',
      TOKEN_ISSUER: issuer.issuer,
      TOKEN_JWKS_URL: issuer.jwksUrl,
      LOG_FORMAT: 'json',
      ...env,
    },
  });
}

async function untilReady(server: Child): Promise<void> {
  for (let line = await server.nextLine(); line !== undefined; line = await server.nextLine()) {
    if (JSON.parse(line).msg === 'ready') return;
  }
  throw new Error(`it ended before it was ready: ${(await server.exit).errors}`);
}

test('runs by its own files and production packages: the set-up, then all functions', async () => {
  const setUp = run(['node', 'infra/node/set-up.ts'], { DATABASE_URL: database.url });
  expect(await setUp.exit).toMatchObject({ code: 0, errors: '' });
  const ports = { HOST: '127.0.0.1', PORT: '0', CONTROLLER_PORT: '0', OPS_PORT: '0' };
  const command = [...JSON.parse(one('ENTRYPOINT')), ...JSON.parse(one('CMD'))];
  const server = run(command, { ...ports, DATABASE_URL: await createServerLogin(database.url) });
  await untilReady(server);
  server.kill('SIGTERM');
  expect((await server.exit).code).toBe(0);
});

test.each(['publish', 'reconcile'])(
  'has the script %s, for cron, which works with the login of servers',
  async (script) => {
    const own = await createTestDatabase({ migrated: false });
    expect(await run(['node', 'infra/node/set-up.ts'], { DATABASE_URL: own.url }).exit).toMatchObject({ code: 0 });
    const child = run(['node', `infra/local/${script}.ts`], { DATABASE_URL: await createServerLogin(own.url) });
    expect(await child.nextLine()).toMatch(/^(published \d+ events|ran \d+ passes)/);
    expect(await child.exit).toMatchObject({ code: 0, errors: '' });
    await own.drop();
  },
);

test('the image runs as another user than root', () => {
  expect(one('USER')).toMatch(/^[1-9]\d*$/);
});

test('the image takes in no keys and data, and all that it copies', () => {
  const ignored = readFileSync('infra/node/Dockerfile.dockerignore', 'utf8').split('\n');
  expect(ignored.find((line) => line !== '' && !line.startsWith('#'))).toBe('*');
  const copied = instructions.filter(({ word, rest }) => word === 'COPY' && !rest.startsWith('--from'));
  for (const path of copied.flatMap(({ rest }) => rest.split(' ').slice(0, -1))) expect(ignored).toContain(`!${path}`);
});
