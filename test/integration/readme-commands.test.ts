import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 180_000;
const START_TIMEOUT_MS = 60_000;

/** As `git clone` makes it: what is tracked, and nothing that was installed or left. */
let clone: string;

beforeAll(async () => {
  clone = await mkdtemp(join(tmpdir(), 'plumbline-clone-'));
  const { stdout } = await run('git', ['ls-files', '-z']);
  for (const file of stdout.split('\0').filter(Boolean)) {
    await cp(file, join(clone, file));
  }
});

afterAll(() => rm(clone, { recursive: true, force: true }));

test(
  'npm ci and npm start, in a fresh clone, give a control plane that takes a tenant and stops in order',
  { timeout: INSTALL_TIMEOUT_MS + START_TIMEOUT_MS },
  async () => {
    await run('npm', ['ci', '--prefer-offline'], { cwd: clone, timeout: INSTALL_TIMEOUT_MS });
    const server = spawn('npm', ['start'], {
      cwd: clone,
      env: { ...process.env, PORT: '0', CONTROLLER_PORT: '0', OPS_PORT: '0', DATA_DIR: '' },
      stdio: 'ignore',
    });
    const exited = once(server, 'exit');
    const state = join(clone, '.plumbline');
    const info = await expect
      .poll(() => readFile(join(state, 'run.json'), 'utf8').catch(() => ''), { timeout: START_TIMEOUT_MS })
      .toContain('publicUrl')
      .then(() => readFile(join(state, 'run.json'), 'utf8'));
    const { publicUrl } = JSON.parse(info) as { publicUrl: string };
    const token = await readFile(join(state, 'tokens', 'admin'), 'utf8');
    const answer = await fetch(`${publicUrl}/apis/plumbline.dev/v1/tenants`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name: 'acme' }, spec: {} }),
    });
    expect(answer.status).toBe(201);
    server.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    expect(await readFile(join(state, 'run.json')).catch(() => 'gone')).toBe('gone');
  },
);
