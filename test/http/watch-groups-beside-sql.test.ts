/** What the black-box suite of watch groups cannot bring about: retention. */

import { expect, test } from 'vitest';

import { uniqueName } from '#test/http/resource-api/world.ts';
import { deliveriesOf, isOf, useGroups } from '#test/http/watch-groups/world.ts';
import { expireEvents } from '#test/support/old-events.ts';
import { useOwnInstance } from '#test/support/own-instance.ts';

const instance = useOwnInstance();
const world = useGroups(instance.open);

test('a lane that lost events to retention says so before it goes on, and again until that is acked', async () => {
  const group = uniqueName('lost');
  const query = { tenants: world.tenant };
  const uid = await world.write('w', 3);
  const first = await world.join(group, query);
  await first.waitFor(isOf(uid, 2));
  expect(await world.ack(first.events.find(isOf(uid, 0))?.id)).toBe('Acked');
  await first.close();
  await expireEvents(instance.sql, world.tenant, 2);

  const lostFrame = {
    event: 'BOOKMARK',
    id: expect.any(String),
    data: { reason: 'ResyncRequired', tenant: world.tenant, lane: expect.any(String), fence: expect.any(String) },
  };
  const second = await world.join(group, query);
  expect(await second.next()).toEqual(lostFrame);
  await second.waitFor(isOf(uid, 2));
  expect(deliveriesOf(second, uid)).toEqual(['2 again 2']);
  await second.close();

  const third = await world.join(group, query);
  const lost = await third.next();
  expect(lost).toEqual(lostFrame);
  expect(await world.ack(lost.id)).toBe('Acked');
  const { data } = await third.waitFor(isOf(uid, 2));
  expect([data.attempt, data.lane, data.fence]).toEqual([3, lost.data.lane, lost.data.fence]);
  await third.close();

  const last = await world.join(group, query);
  const kept = await last.next();
  expect([kept.data.uid, kept.data.attempt]).toEqual([uid, 4]);
  expect(await world.ack(kept.id)).toBe('Acked');
});

test('a group that is new to a log whose beginning is gone begins at what is kept, without a word', async () => {
  const client = await world.join(uniqueName('new'), { tenants: world.tenant });
  expect((await client.next()).data).toMatchObject({ seq: '3', attempt: 1 });
});
