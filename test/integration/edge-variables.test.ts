/** `npm run edge` looks at its variables before it starts anything. */

import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startChild } from '#test/support/child.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'plumbline-edge-'));
});

afterEach(() => rm(folder, { recursive: true }));

test('what is wrong, and what would be ignored, is told at once, and nothing is started', async () => {
  const dataDir = join(folder, 'data');
  const child = startChild('infra/cloudflare/main.ts', [], {
    env: {
      DATABASE_URL: '',
      DATA_DIR: dataDir,
      WATCH_SHARDS: '0',
      CURSOR_KEYS_FILE: '/keys',
      OPS_HOST: 'ops.example',
      PORT: 'x',
    },
  });
  const { code, errors } = await child.exit;
  expect([code, errors.trimEnd().split('\n')]).toEqual([
    1,
    [
      'OPS_HOST is "ops.example"; allowed: nothing, for npm run edge tells operators by their port: HOST and OPS_PORT',
      'WATCH_SHARDS is "0"; allowed: 1 to 1000',
      'CURSOR_KEYS_FILE is "/keys"; allowed: nothing, for a worker has no files; CURSOR_KEYS has the keys themselves',
      'PORT is "x"; allowed: an integer from 0 to 65535, where 0 picks a free port',
    ],
  ]);
  expect(existsSync(dataDir)).toBe(false);
});

test('a client certificate for brokers is refused before its files and the brokers are looked at', async () => {
  const child = startChild('infra/cloudflare/main.ts', [], {
    env: {
      DATABASE_URL: '',
      DATA_DIR: join(folder, 'data'),
      EVENT_LOG: 'kafka',
      KAFKA_BROKERS: '127.0.0.1:1',
      KAFKA_SSL: 'true',
      KAFKA_CLIENT_CERT_FILE: join(folder, 'tls.crt'),
      KAFKA_CLIENT_KEY_FILE: join(folder, 'tls.key'),
    },
  });
  const { code, errors } = await child.exit;
  expect(code).toBe(1);
  expect(errors.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^KAFKA_CLIENT_CERT_FILE is .*; allowed: nothing, for sockets of workerd send no client/),
    expect.stringMatching(/^KAFKA_CLIENT_KEY_FILE is /),
  ]);
});
