import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { loadDevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import { readRunFile, removeRunFile, writeRunFile } from '#infra/_shared/data-dir/run-file.ts';
import { writeTokenFiles } from '#infra/_shared/tokens/token-files.ts';
import { startChild } from '#test/support/child.ts';

let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'plumbline-scripts-'));
});

afterEach(() => rm(dataDir, { recursive: true }));

interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

async function runScript(name: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const child = startChild(`infra/local/${name}.ts`, args, { env: { DATA_DIR: dataDir, DATABASE_URL: '', ...env } });
  const lines: string[] = [];
  for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) lines.push(line);
  const { code, errors } = await child.exit;
  return { code, output: lines.join('\n'), errors };
}

async function modeOf(...path: readonly string[]): Promise<string> {
  return ((await stat(join(dataDir, ...path))).mode & 0o777).toString(8);
}

describe('the key of DATA_DIR', () => {
  test('is one and the same for all processes that make it at once', async () => {
    const tokens = await Promise.all(Array.from({ length: 4 }, () => runScript('token', ['--role', 'admin'])));
    const { jwks } = await loadDevelopmentIdentity(dataDir);
    const keys = createLocalJWKSet(jwks);
    for (const { output } of tokens) await expect(jwtVerify(output, keys)).resolves.toBeDefined();
    expect(await readdir(join(dataDir, 'keys'))).toEqual(['development.jwk.json']);
  });

  test('signs nothing where an issuer does', async () => {
    const env = { TOKEN_ISSUER: 'https://id.example', TOKEN_JWKS_URL: 'https://id.example/keys' };
    const { code, errors } = await runScript('token', ['--role', 'admin'], env);
    expect([code, errors]).toEqual([1, 'TOKEN_ISSUER is set: tokens are made by https://id.example\n']);
    expect(await readdir(dataDir)).toEqual([]);
  });

  test('is readable by its owner alone, and is never given away', async () => {
    const { jwks } = await loadDevelopmentIdentity(dataDir);
    expect([await modeOf('keys'), await modeOf('keys', 'development.jwk.json')]).toEqual(['700', '600']);
    expect(Object.keys(jwks.keys[0] ?? {}).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  });

  test('is refused when the file is something else, and says what to do', async () => {
    await mkdir(join(dataDir, 'keys'));
    await writeFile(join(dataDir, 'keys', 'development.jwk.json'), '{"kty":"oct"}');
    const { code, errors } = await runScript('token', ['--role', 'admin']);
    expect({ code, errors }).toEqual({
      code: 1,
      errors: `${dataDir}/keys/development.jwk.json is not an Ed25519 private key in JWK form; remove it to have a new one made\n`,
    });
  });
});

test.each([
  ['token', '--help', 'usage: npm run -s token -- --role editor'],
  ['token', '-h', 'usage: npm run -s token -- --role editor'],
  ['block', '--help', 'usage: npm run -s block -- --subject jane'],
  ['unblock', '--help', 'usage: npm run -s unblock -- --subject jane'],
  ['cursor-keys', '--help', 'usage: npm run -s cursor-keys -- list'],
])('npm run %s says with %s how it is used, and does nothing', async (name, argument, words) => {
  const { code, output, errors } = await runScript(name, [argument]);
  expect([code, errors, output.startsWith(words)], output).toEqual([0, '', true]);
  expect(await readdir(dataDir)).toEqual([]);
});

describe('npm run token', () => {
  test('prints a token with the claims that were asked for', async () => {
    const args = ['--role', 'editor,viewer', '--tenants', 'acme,globex', '--ttl', '15m', '--subject', 'jane'];
    const { output } = await runScript('token', args);
    const { exp = 0, iat = 0, jti, ...claims } = decodeJwt(output);
    expect(claims).toEqual({
      iss: 'plumbline/development',
      aud: 'plumbline/public',
      sub: 'jane',
      roles: ['editor', 'viewer'],
      tenants: ['acme', 'globex'],
    });
    expect(exp - iat).toBe(15 * 60);
    expect(Math.abs(Date.now() / 1000 - iat)).toBeLessThan(60);
    expect(jti).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('prints controllers a token for all tenants of the private audience, unless told otherwise', async () => {
    const { output } = await runScript('token', ['--role', 'controller']);
    expect(decodeJwt(output)).toMatchObject({ aud: 'plumbline/private', tenants: '*' });
    const other = await runScript('token', ['--role', 'controller', '--audience', 'public']);
    expect(decodeJwt(other.output)).toMatchObject({ aud: 'plumbline/public' });
  });

  test.each([
    [[], '--role is missing'],
    [['--role', 'root'], '--role is "root"; allowed: viewer, editor, controller, admin'],
    [['--role', 'admin', '--audience', 'secret'], '--audience is "secret"; allowed: public, private'],
    [
      ['--role', 'admin', '--ttl', 'soon'],
      '--ttl is "soon"; allowed: a number and s, m, h or d, such as 90s, 15m, 1h, 30d',
    ],
    [
      ['--role', 'admin', '--ttl', '0h'],
      '--ttl is "0h"; allowed: a number and s, m, h or d, such as 90s, 15m, 1h, 30d',
    ],
    [
      ['--role', 'admin', '--tenants', 'acme,Globex'],
      '--tenants has "Globex"; a name must have 1 to 63 lower-case letters',
    ],
    [['--role', 'admin', '--tenants', ''], '--tenants has ""; a name must have'],
    [['--role', 'admin', '--subject', ' '], '--subject is " "; allowed: 1 to 253 characters'],
    [['--rule', 'admin'], "Unknown option '--rule'"],
    [['admin'], "Unexpected argument 'admin'"],
  ])('refuses %j', async (args, complaint) => {
    const { code, output, errors } = await runScript('token', args);
    expect(errors.startsWith(complaint)).toBe(true);
    expect(errors).toContain('usage: npm run -s token -- --role editor');
    expect({ code, output }).toEqual({ code: 1, output: '' });
  });
});

describe('writeTokenFiles()', () => {
  test('writes one token per role, for all tenants and 30 days, readable by the owner alone', async () => {
    const identity = await loadDevelopmentIdentity(dataDir);
    await writeTokenFiles(dataDir, identity);
    expect((await readdir(join(dataDir, 'tokens'))).toSorted()).toEqual(['admin', 'controller', 'editor', 'viewer']);
    expect([await modeOf('tokens'), await modeOf('tokens', 'admin')]).toEqual(['700', '600']);
    for (const [role, audience] of [
      ['viewer', 'public'],
      ['editor', 'public'],
      ['admin', 'public'],
      ['controller', 'private'],
    ]) {
      const text = await readFile(join(dataDir, 'tokens', role ?? ''), 'utf8');
      const { payload } = await jwtVerify(text, createLocalJWKSet(identity.jwks), {
        audience: `plumbline/${audience}`,
        issuer: identity.issuer,
      });
      expect(payload).toMatchObject({ roles: [role], tenants: '*' });
      expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(30 * 86_400);
    }
  });
});

describe('run.json', () => {
  const info = {
    pid: 1,
    publicUrl: 'http://a',
    controllerUrl: 'http://b',
    opsUrl: 'http://c',
    databaseUrl: 'postgres://d',
  };

  test('holds what was written, readable by the owner alone, until it is removed', async () => {
    expect(await readRunFile(dataDir)).toBeUndefined();
    await writeRunFile(dataDir, info);
    await writeRunFile(dataDir, { ...info, pid: 2 });
    expect(await readRunFile(dataDir)).toEqual({ ...info, pid: 2 });
    expect(await modeOf('run.json')).toBe('600');
    expect(await readdir(dataDir)).toEqual(['run.json']);
    await removeRunFile(dataDir);
    await removeRunFile(dataDir);
    expect(await readRunFile(dataDir)).toBeUndefined();
  });
});

describe('npm run sql', () => {
  test('prints rows aligned, as PostgreSQL prints the values', async () => {
    const statement = `select * from (values (1, 'x', null), (23, E'a\\nb', '{"a": 1}'::jsonb)) as t (number, text, document)`;
    const { output, errors } = await runScript('sql', [statement], { DATABASE_URL: inject('postgresAdminUrl') });
    expect(errors).toBe('');
    expect(output.split('\n')).toEqual([
      ' number | text | document',
      '--------+------+----------',
      '      1 | x    |',
      '     23 | a\\nb | {"a": 1}',
      '(2 rows)',
    ]);
  });

  test('prints the command and its count for a statement without rows', async () => {
    const env = { DATABASE_URL: inject('postgresAdminUrl') };
    const statement = `do $$ begin raise notice 'hello'; end $$`;
    expect(await runScript('sql', [statement], env)).toEqual({ code: 0, output: 'DO', errors: 'NOTICE: hello\n' });
    const { output } = await runScript('sql', ['create temp table t as select generate_series(1, 3)'], env);
    expect(output).toBe('SELECT 3');
    const returning = await runScript(
      'sql',
      ['create temp table t (a int); insert into t values (1), (2) returning a'],
      env,
    );
    expect(returning.output.split('\n')).toEqual(['CREATE TABLE', ' a', '---', ' 1', ' 2', '(2 rows)', 'INSERT 2']);
  });

  test('finds the database of the running instance by run.json', async () => {
    const databaseUrl = inject('postgresAdminUrl');
    await writeRunFile(dataDir, { pid: 1, publicUrl: '', controllerUrl: '', opsUrl: '', databaseUrl });
    expect((await runScript('sql', ['select 1 as one'])).output).toContain('(1 row)');
  });

  test('takes another database of the same server', async () => {
    const env = { DATABASE_URL: inject('postgresAdminUrl') };
    const { output } = await runScript('sql', ['--database', 'postgres', 'select current_database()'], env);
    expect(output).toContain(' postgres');
  });

  test('says what to do when no instance runs', async () => {
    expect(await runScript('sql', ['select 1'])).toEqual({
      code: 1,
      output: '',
      errors: `no instance runs in ${dataDir}: run npm start there first, or set DATABASE_URL\n`,
    });
  });

  test("tells PostgreSQL's error, and one about the connection without the password", async () => {
    const wrong = await runScript('sql', ['selct 1'], { DATABASE_URL: inject('postgresAdminUrl') });
    expect(wrong).toEqual({ code: 1, output: '', errors: 'ERROR 42601: syntax error at or near "selct"\n' });
    const away = await runScript('sql', ['select 1'], { DATABASE_URL: 'postgres://jane:secret@127.0.0.1:1/x' });
    expect(away.code).toBe(1);
    expect(away.errors).toMatch(/^postgres:\/\/jane:\*\*\*@127\.0\.0\.1:1\/x cannot be reached: .*ECONNREFUSED.*\n$/);
  });
});
