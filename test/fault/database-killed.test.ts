import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';

import { expectDelivered } from '#test/fault/delivery.ts';
import { expectRefusedWell, untilReadiness } from '#test/fault/expectations.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import { enterableFolder } from '#test/support/embedded.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';

const ROUNDS = 5;

let dataDir: string | undefined;
let instance: LocalInstance | undefined;
afterAll(async () => {
  await instance?.stop();
  if (dataDir) await rm(dataDir, { recursive: true });
});

test(
  `over ${ROUNDS} times kill -9 of PostgreSQL under load, writes are refused with 503 or answered, watchers stay connected and miss nothing`,
  { timeout: 120_000 },
  async () => {
    dataDir = await enterableFolder();
    instance = await startLocalInstance({ databaseUrl: '', dataDir });
    const { opsUrl, process: server } = instance;
    const baseUrl = (): string => instance?.baseUrl ?? '';
    const { tenant, token } = await makeTenant(instance);
    const watcher = startResumingWatcher({ baseUrl, token, tenants: tenant });
    const all = startResumingWatcher({ baseUrl, token });
    await Promise.all([watcher.ready, all.ready]);
    const writers = startWriters({ baseUrl, token, tenant });
    const recoveriesMs: number[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      await writers.more(60);
      process.kill(await postmasterOf(server.pid), 'SIGKILL');
      const begin = performance.now();
      expect(JSON.parse(await untilReadiness(opsUrl, 503))).toMatchObject({ status: 'not ready' });
      await writers.more(1);
      recoveriesMs.push(performance.now() - begin);
      await untilReadiness(opsUrl, 200);
    }
    await writers.more(60);
    await writers.stop();
    await expectDelivered(watcher, writers.acknowledged);

    console.log(
      `${writers.acknowledged.length} writes answered, ${writers.refusals.length} refused, slowest answer ${Math.round(writers.slowestMs)} ms; ` +
        `first write after the kill in ${recoveriesMs.map(Math.round).join(', ')} ms`,
    );
    expect(writers.refusals.length).toBeGreaterThan(0);
    expectRefusedWell(writers);
    expect([watcher.connections, all.connections]).toEqual([1, 1]);
    expect(all.failures).toEqual([]);
    await Promise.all([watcher.stop(), all.stop()]);
  },
);

/** The embedded server is the only child of the instance by that name. */
async function postmasterOf(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-e', '-ww', '-o', 'pid=,ppid=,command=']);
  const lines = stdout.split('\n').map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line));
  const found = lines.find((match) => Number(match?.[2]) === pid && match?.[3]?.includes('postgres -D'));
  if (!found) throw new Error(`process ${pid} has no PostgreSQL`);
  return Number(found[1]);
}
