import { rm } from 'node:fs/promises';
import { afterAll, expect, test } from 'vitest';

import { expectDelivered } from '#test/fault/delivery.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import { enterableFolder } from '#test/support/embedded.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';

const ROUNDS = 20;
const WRITES_PER_ROUND = 60;
const RESTART_LIMIT_MS = 30_000;

let dataDir: string | undefined;
let instance: LocalInstance | undefined;
afterAll(async () => {
  await instance?.stop();
  if (dataDir) await rm(dataDir, { recursive: true });
});

test(
  `over ${ROUNDS} times kill -9 under load, with the embedded PostgreSQL, a watcher that resumes sees every answered write exactly once, in order`,
  { timeout: 180_000 },
  async () => {
    dataDir = await enterableFolder();
    instance = await startLocalInstance({ databaseUrl: '', dataDir });
    const { tenant, token } = await makeTenant(instance);
    const baseUrl = (): string => instance?.baseUrl ?? '';
    const env = { PORT: new URL(baseUrl()).port };
    const watcher = startResumingWatcher({ baseUrl, token, tenants: tenant });
    await watcher.ready;
    const writers = startWriters({ baseUrl, token, tenant });
    const restartsMs: number[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      await writers.more(WRITES_PER_ROUND);
      instance.process.kill('SIGKILL');
      await instance.process.exit;
      const begin = performance.now();
      instance = await startLocalInstance({ databaseUrl: '', dataDir, env });
      restartsMs.push(performance.now() - begin);
    }
    await writers.more(WRITES_PER_ROUND);
    await writers.stop();
    await expectDelivered(watcher, writers.acknowledged);
    await watcher.stop();

    const sorted = restartsMs.toSorted((a, b) => a - b).map(Math.round);
    console.log(
      `${writers.acknowledged.length} writes answered, ${watcher.events.length} events, ${writers.broken} connections broken; ` +
        `ready after kill -9 in ${sorted[ROUNDS / 2]} ms (median), ${sorted.at(-1)} ms (worst)`,
    );
    expect(watcher.connections).toBeGreaterThan(ROUNDS);
    expect([...writers.answers.keys()].filter((code) => code >= 500 && code !== 503)).toEqual([]);
    expect(sorted.at(-1)).toBeLessThan(RESTART_LIMIT_MS);
  },
);
