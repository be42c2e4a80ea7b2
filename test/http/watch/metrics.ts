import { expect, test, vi } from 'vitest';

import { useWorld } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE, passMark, useWatches } from '#test/http/watch/world.ts';
import { TENANTS } from '#test/http/resource-api/world.ts';
import type { OpenDeployment } from '#test/http/target.ts';

const ACTIVE = 'plumbline_watch_active_streams{mode="broadcast"}';

/** What operators see of watches. Nothing else may watch the deployment meanwhile. */
export function metrics(open: OpenDeployment): void {
  const world = useWorld(async () => (await open()).targets.public);
  const watches = useWatches(world);

  async function read(name: string): Promise<number> {
    const { opsUrl } = await open();
    const text = await (await fetch(`${opsUrl}/metrics`)).text();
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1) ?? 0);
  }

  const ended = (reason: string): Promise<number> => read(`plumbline_watch_ended_streams_total{reason="${reason}"}`);

  test('open streams are counted while they are open, and ended ones by their reason', async () => {
    const before = { active: await read(ACTIVE), client: await ended('client') };
    const clients = await Promise.all([watches.open(), watches.open(), watches.open({ initial: 'true' })]);
    expect(await read(ACTIVE)).toBe(before.active + 3);
    await watches.refused({ from: 'nonsense' });
    await watches.refusedInStream({}, { lastEventId: 'nonsense' });
    expect(await read(ACTIVE)).toBe(before.active + 3);
    for (const client of clients) await client.close();
    await vi.waitFor(async () => {
      expect(await read(ACTIVE)).toBe(before.active);
      expect(await ended('client')).toBe(before.client + 3);
    }, 5_000);
  });

  test('the end of a token and the end of a tenant are told apart from clients that go', async () => {
    const before = { client: await ended('client'), token: await ended('token'), tenant: await ended('tenant') };
    const { name } = await createTenant(world);
    const expiring = await watches.open({}, { grant: { ...EVERYONE, ttlSeconds: -59 } });
    const named = await watches.open({ tenants: name }, { grant: EVERYONE });
    await world.admin.delete(`${TENANTS}/${name}`);
    await Promise.all([expiring.ended, named.ended]);
    await vi.waitFor(async () => {
      expect({
        client: await ended('client'),
        token: await ended('token'),
        tenant: await ended('tenant'),
      }).toEqual({ ...before, token: before.token + 1, tenant: before.tenant + 1 });
    }, 5_000);
  });

  test('published events are counted, and no event was ever found in the stream of another tenant', async () => {
    const before = await read('plumbline_published_events_total');
    const client = await watches.open();
    await passMark(world, client);
    // The publisher counts when it hears of its batch, which the watcher may have before.
    await expect.poll(() => read('plumbline_published_events_total'), { timeout: 5_000 }).toBeGreaterThan(before);
    expect(await read('plumbline_isolation_violations_total')).toBe(0);
  });
}
