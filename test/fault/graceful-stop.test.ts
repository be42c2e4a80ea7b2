import { rm } from 'node:fs/promises';
import { afterAll, expect, test } from 'vitest';

import { expectDelivered } from '#test/fault/delivery.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startWriters } from '#test/fault/writers.ts';
import { enterableFolder } from '#test/support/embedded.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { openSse, type SseClient } from '#test/support/sse-client.ts';

const ROUNDS = 3;
const STOP_LIMIT_MS = 10_000;

let dataDir: string | undefined;
let instance: LocalInstance | undefined;
afterAll(async () => {
  await instance?.stop();
  if (dataDir) await rm(dataDir, { recursive: true });
});

test(
  'SIGTERM under load: streams end with a bookmark, what is in flight is answered, exit 0, and a restart resumes exactly',
  { timeout: 120_000 },
  async () => {
    dataDir = await enterableFolder();
    instance = await startLocalInstance({ databaseUrl: '', dataDir });
    const { tenant, token } = await makeTenant(instance);
    const baseUrl = (): string => instance?.baseUrl ?? '';
    const env = { PORT: new URL(baseUrl()).port };
    const watcher = startResumingWatcher({ baseUrl, token, tenants: tenant });
    await watcher.ready;
    const writers = startWriters({ baseUrl, token, tenant, count: 8 });
    const stopsMs: number[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      const streams = await Promise.all(
        ['', `?tenants=${tenant}`, '?kinds=ManagedDatabase', '?initial=true'].map((query) =>
          openSse(`${baseUrl()}/watch/v1/events${query}`, { token }),
        ),
      );
      await writers.more(100);
      const begin = performance.now();
      instance.process.kill('SIGTERM');
      const { code, signal, errors } = await instance.process.exit;
      stopsMs.push(performance.now() - begin);
      expect({ code, signal, errors }).toEqual({ code: 0, signal: null, errors: '' });
      for (const stream of streams) await expectEndedInPeace(stream);
      instance = await startLocalInstance({ databaseUrl: '', dataDir, env });
    }
    await writers.more(50);
    await writers.stop();
    await expectDelivered(watcher, writers.acknowledged);
    // Also the reverse: whatever was done was answered, however the stop fell.
    expect(watcher.events).toHaveLength(writers.acknowledged.length);
    expect([...writers.answers.keys()]).toEqual(expect.not.arrayContaining([500, 502]));
    await watcher.stop();
    const shown = stopsMs.map(Math.round).join(', ');
    console.log(`stopped in ${shown} ms; ${writers.acknowledged.length} writes answered, ${writers.broken} not taken`);
    expect(Math.max(...stopsMs)).toBeLessThan(STOP_LIMIT_MS);
  },
);

async function expectEndedInPeace(stream: SseClient): Promise<void> {
  expect(await stream.ended).toBeUndefined();
  const last = stream.events.at(-1);
  expect([last?.event, last?.data.reason]).toEqual(['BOOKMARK', 'Progress']);
  expect(last?.id).toBe(stream.lastEventId);
}
