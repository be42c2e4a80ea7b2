import { beforeAll, expect, test, vi } from 'vitest';

import { startWriters } from '#test/fault/writers.ts';
import { type FaultTenant, makeTenant } from '#test/fault/tenant.ts';
import type { LocalInstance } from '#test/support/local-instance.ts';
import { useOwnInstance } from '#test/support/own-instance.ts';
import { openSse } from '#test/support/sse-client.ts';
import { canVanish, startVanishingClient } from '#test/support/vanishing-client.ts';

/** What is promised. */
const DEADLINE_MS = 60_000;

const own = useOwnInstance();
let instance: LocalInstance;
let tenant: FaultTenant;

beforeAll(async () => {
  instance = await own.open();
  tenant = await makeTenant(instance);
});

async function openStreams(): Promise<number> {
  const text = await (await fetch(`${instance.opsUrl}/metrics`)).text();
  return Number(/^plumbline_watch_active_streams\{mode="broadcast"\} (\d+)$/m.exec(text)?.[1]);
}

function pathOf({ tenant: name }: FaultTenant): string {
  return `/watch/v1/events?tenants=${name}`;
}

async function vanish(watched: FaultTenant): Promise<() => void> {
  const request = `GET ${pathOf(watched)} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${watched.token}\r\n\r\n`;
  return startVanishingClient({ url: instance.baseUrl, request, until: 'event: READY' });
}

test.skipIf(!canVanish)(
  'clients whose machines went dark are found within 60 s, on a quiet stream and on a busy one; those that are there stay',
  { timeout: DEADLINE_MS + 30_000 },
  async () => {
    const { baseUrl } = instance;
    const other = await makeTenant(instance);
    const there = await openSse(`${baseUrl}${pathOf(tenant)}`, { token: tenant.token });
    const ends = await Promise.all([tenant, tenant, other].map(vanish));
    expect(await openStreams()).toBe(4);
    const writers = startWriters({ baseUrl: () => baseUrl, ...other, pauseMs: 20 });
    await vi.waitFor(async () => expect(await openStreams()).toBe(1), { timeout: DEADLINE_MS, interval: 200 });
    await writers.stop();
    expect(there.isEnded).toBe(false);
    for (const end of ends) end();
    await there.close();
  },
);
