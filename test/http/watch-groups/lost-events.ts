/** What groups are told of events that retention removed: the same, whichever log the events lie in. */

import { expect, test } from 'vitest';

import { clientOf } from '#test/http/client.ts';
import { uniqueName } from '#test/http/resource-api/world.ts';
import { createTenant } from '#test/http/watch/world.ts';
import { deliveriesOf, type GroupWorld, isOf } from '#test/http/watch-groups/world.ts';

/** @param expire removes the events of a tenant up to a seq; that they are gone is known then. */
export function lostEvents(world: GroupWorld, expire: (tenant: string, lastSeq: number) => Promise<void>): void {
  const lostFrame = (): unknown => ({
    event: 'BOOKMARK',
    id: expect.any(String),
    data: { reason: 'ResyncRequired', tenant: world.tenant, lane: expect.any(String), fence: expect.any(String) },
  });

  test('a group that is new to a log whose beginning is gone begins at what is kept, without a word', async () => {
    const reader = await world.join(uniqueName('reader'), { tenants: world.tenant, start: 'now' });
    const uid = await world.write('new', 3);
    await reader.waitFor(isOf(uid, 2));
    await expire(world.tenant, Number(reader.events.find(isOf(uid, 1))?.data.seq));
    const client = await world.join(uniqueName('new'), { tenants: world.tenant });
    expect((await client.next()).data).toMatchObject({ data: { spec: { size: 2 } }, attempt: 1 });
  });

  test('a lane that lost events to retention, confirmed ones before them or not, says so before it goes on, until that is acked', async () => {
    const group = uniqueName('lost');
    const query = { tenants: world.tenant, start: 'now' };
    const unconfirmed = uniqueName('unconfirmed');
    const [first, leaving] = [await world.join(group, query), await world.join(unconfirmed, query)];
    const uid = await world.write('w', 3);
    await first.waitFor(isOf(uid, 2));
    expect(await world.ack(first.events.find(isOf(uid, 0))?.id)).toBe('Acked');
    await first.close();
    await leaving.waitFor(isOf(uid, 2));
    await leaving.close();
    await expire(world.tenant, Number(leaving.events.find(isOf(uid, 1))?.data.seq));

    expect(await (await world.join(unconfirmed, query)).next()).toEqual(lostFrame());

    const again = await world.join(group, query);
    expect(await again.next()).toEqual(lostFrame());
    await again.waitFor(isOf(uid, 2));
    expect(deliveriesOf(again, uid)).toEqual(['2 again 2']);
    await again.close();

    const third = await world.join(group, query);
    const lost = await third.next();
    expect(lost).toEqual(lostFrame());
    expect(await world.ack(lost.id)).toBe('Acked');
    const { data } = await third.waitFor(isOf(uid, 2));
    expect([data.attempt, data.lane, data.fence]).toEqual([3, lost.data.lane, lost.data.fence]);
    await third.close();

    const last = await world.join(group, query);
    const kept = await last.next();
    expect([kept.data.uid, kept.data.attempt]).toEqual([uid, 4]);
    expect(await world.ack(kept.id)).toBe('Acked');
  });

  test('a group that was reset, and had no member since, is told of what retention removed after that', async () => {
    const group = uniqueName('reset');
    const query = { tenants: world.tenant };
    const uid = await world.write('reset', 1);
    const first = await world.join(group, query);
    const { data } = await first.waitFor(isOf(uid));
    await first.close();
    const admin = await clientOf(world.target, { ...world.owner, roles: ['admin'] });
    const answer = await admin.post(`/watch/v1/groups/${group}/reset?tenants=${world.tenant}`, { reason: 'a test' });
    expect(answer.status, answer.text).toBe(200);
    await expire(world.tenant, Number(data.seq));
    await world.write('behind', 1);
    const lost = await (await world.join(group, query)).next();
    expect(lost.data).toMatchObject({ reason: 'ResyncRequired', tenant: world.tenant });
  });

  test('a group is told of what is gone of a tenant that came while it had no member', async () => {
    const group = uniqueName('later');
    const everyone = { roles: ['viewer'], tenants: '*', subject: world.owner.subject ?? '' } as const;
    const first = await world.join(group, { start: 'now' }, everyone);
    await first.close();
    const { name, widgets } = await createTenant(world);
    for (const widget of ['one', 'two']) await world.admin.post(widgets, { metadata: { name: widget }, spec: {} });
    await expire(name, 1);
    const second = await world.join(group, { start: 'now' }, everyone);
    await second.waitFor(({ data }) => data.reason === 'ResyncRequired' && data.tenant === name);
    const { data } = await second.waitFor(({ data: { tenant, seq } }) => tenant === name && seq !== undefined);
    expect(data).toMatchObject({ seq: '2', attempt: 1 });
  });
}
