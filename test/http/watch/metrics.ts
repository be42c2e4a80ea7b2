import { expect, test, vi } from 'vitest';

import { useWorld } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE, passMark, useWatches } from '#test/http/watch/world.ts';
import { TENANTS } from '#test/http/resource-api/world.ts';
import type { OpenDeployment } from '#test/http/target.ts';

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

  const active = (mode: string): Promise<number> => read(`plumbline_watch_active_streams{mode="${mode}"}`);
  const ended = (reason: string): Promise<number> => read(`plumbline_watch_ended_streams_total{reason="${reason}"}`);

  test('open streams are counted while they are open, and ended ones by their reason', async () => {
    const before = { active: await active('broadcast'), client: await ended('client') };
    const clients = await Promise.all([watches.open(), watches.open(), watches.open({ initial: 'true' })]);
    expect(await active('broadcast')).toBe(before.active + 3);
    await watches.refused({ from: 'nonsense' });
    await watches.refusedInStream({}, { lastEventId: 'nonsense' });
    expect(await active('broadcast')).toBe(before.active + 3);
    for (const client of clients) await client.close();
    await vi.waitFor(async () => {
      expect(await active('broadcast')).toBe(before.active);
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

  test('members of groups are counted apart, with what their groups are behind by and what was refused', async () => {
    const totals = async (): Promise<readonly number[]> =>
      Promise.all(
        ['groups', 'group_members', 'group_dead_letters', 'group_redeliveries_total', 'group_fenced_acks_total'].map(
          (name) => read(`plumbline_${name}`),
        ),
      );
    const before = { totals: await totals(), active: await active('group') };
    const client = await watches.open({ group: 'counted', start: 'now', maxAttempts: '2' });
    expect(await active('group')).toBe(before.active + 1);
    const { id } = await passMark(world, client);
    for (const answer of ['Acked', 'Fenced']) {
      const { body } = await world.viewer.post('/watch/v1/acks', { nacks: [{ token: id, delayMs: 0 }] });
      expect(body.reason ?? body.results[0].status).toBe(answer);
    }
    const again = await client.waitFor(({ data }) => data.attempt === 2);
    await world.viewer.post('/watch/v1/acks', { nacks: [{ token: again.id, delayMs: 0 }] });
    const grown = [1, 1, 1, 1, 1];
    await expect
      .poll(totals, { timeout: 5_000 })
      .toEqual(before.totals.map((count, index) => count + (grown[index] ?? 0)));
    expect(await read('plumbline_group_oldest_unacked_seconds')).toBe(0);
    await client.close();
    await expect.poll(() => active('group'), { timeout: 5_000 }).toBe(before.active);
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
