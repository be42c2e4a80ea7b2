/** What the black-box suite of watch groups cannot bring about: retention, retired keys, and thousands of dead letters. */

import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';

import { postgresCursorKeyAdmin } from '#adapters/postgres/cursor-keys.ts';
import { RETIRE_AFTER_MS } from '#core/ports/cursor-keys.ts';
import { MAX_DEAD_LETTERS } from '#core/ports/watch-groups.ts';
import { clientOf } from '#test/http/client.ts';
import { uniqueName } from '#test/http/resource-api/world.ts';
import { lostEvents } from '#test/http/watch-groups/lost-events.ts';
import { isOf, useGroups } from '#test/http/watch-groups/world.ts';
import { expireEvents } from '#test/support/old-events.ts';
import { useOwnInstance } from '#test/support/own-instance.ts';

const instance = useOwnInstance();
const world = useGroups(instance.open);

lostEvents(world, (tenant, lastSeq) => expireEvents(instance.sql, tenant, lastSeq));

test('a lane that would have a dead letter too many stands still, says so, and goes on once there is room', async () => {
  const group = uniqueName('full');
  const client = await world.join(group, { tenants: world.tenant, start: 'now', maxAttempts: '1' });
  const refuse = async (uid: string): Promise<void> => {
    expect(await world.nack((await client.waitFor(isOf(uid, 0))).id)).toBe('Acked');
  };
  const letters = `/watch/v1/groups/${group}/deadletters`;
  const query = `?tenants=${world.tenant}`;
  const state = async (): Promise<unknown> => {
    const { deadLetters, deadLettersFull } = (await world.member.get(`/watch/v1/groups/${group}${query}`)).body;
    return [deadLetters, deadLettersFull];
  };
  await refuse(await world.write('first', 1));
  await expect.poll(state, { timeout: 10_000 }).toEqual([1, undefined]);
  await instance.sql`insert into plumbline.group_dead_letter
      (watch_group, stream, lane, seq, position, event, type, attempts, reason)
    select watch_group, stream, lane, seq + n, position, event, type, attempts, reason
    from plumbline.group_dead_letter d, generate_series(1000, ${998 + MAX_DEAD_LETTERS}) n
    where watch_group = (select id from plumbline.watch_group where name = ${group})`;
  expect(await state()).toEqual([MAX_DEAD_LETTERS, true]);

  const uid = await world.write('second', 2);
  await refuse(uid);
  // Lanes beside it go on.
  for (const name of Array.from({ length: 40 }, (_, index) => `beside-${index}`)) await world.write(name, 1);
  await expect.poll(() => client.events.length, { timeout: 10_000 }).toBeGreaterThan(7);
  expect(client.events.filter(isOf(uid, 1))).toEqual([]);
  const { items } = (await world.member.get(`${letters}${query}&limit=1`)).body;
  const admin = await clientOf(world.target, { ...world.owner, roles: ['admin'] });
  expect((await admin.post(`${letters}/${items[0].id}/skip${query}`, { reason: 'a test' })).status).toBe(200);
  await expect.poll(() => client.events.filter(isOf(uid, 1)).length, { timeout: 20_000 }).toBe(1);
  expect(await state()).toEqual([MAX_DEAD_LETTERS, true]);
}, 60_000);

test('what was delivered under a key that is retired comes again, with another id; what was under a newer one does not', async () => {
  const keys = postgresCursorKeyAdmin(instance.sql, randomBytes);
  const [old] = await keys.list();
  const keyOf = (id: string | undefined): number | undefined => Buffer.from(id ?? '', 'base64url')[0];
  const group = uniqueName('keys');
  const client = await world.join(group, { start: 'now', maxAttempts: '2' });
  const poison = await world.write('poison', 1);
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    expect(await world.nack((await client.waitFor(isOf(poison))).id)).toBe('Acked');
  }
  const letters = `/watch/v1/groups/${group}/deadletters`;
  await expect.poll(async () => (await world.member.get(letters)).body.items.length, { timeout: 10_000 }).toBe(1);
  const [{ id: letter }] = (await world.member.get(letters)).body.items;
  const admin = await clientOf(world.target, { ...world.owner, roles: ['admin'] });
  await admin.post(`${letters}/${letter}/retry`, { reason: 'a test' });
  const outdatedLetter = await client.waitFor(({ data }) => data.deadletter === letter);
  const uid = await world.write('outdated', 1);
  const outdated = await client.waitFor(isOf(uid));
  expect([outdated, outdatedLetter].map(({ id }) => keyOf(id))).toEqual([old?.id, old?.id]);

  await keys.rotate(-RETIRE_AFTER_MS - 1);
  /** On a lane of which nothing was delivered under the old key. */
  const isNew = ({ id, data }: (typeof client.events)[number]): boolean =>
    id !== undefined &&
    keyOf(id) !== old?.id &&
    !client.events.some((other) => keyOf(other.id) === old?.id && other.data.lane === data.lane);
  await expect
    .poll(
      async () => {
        await world.write(uniqueName('w'), 1);
        return client.events.some(isNew);
      },
      { timeout: 20_000, interval: 100 },
    )
    .toBe(true);
  const kept = client.events.find(isNew);
  expect(await keys.retire(old?.id ?? -1)).toBe('retired');
  const isAgain = ({ data }: (typeof client.events)[number]): boolean =>
    (data.uid === uid && data.attempt === 2) || (data.deadletter === letter && data.attempt === 4);
  await expect.poll(() => client.events.filter(isAgain).length, { timeout: 20_000 }).toBe(2);
  const [one, other] = client.events.filter(isAgain);
  expect(await world.ack(outdated.id, outdatedLetter.id)).toBe('Fenced');
  expect(await world.ack(one?.id, other?.id, kept?.id)).toBe('Acked Acked Acked');
  expect(client.events.filter(({ data }) => data.uid === kept?.data.uid)).toHaveLength(1);
  expect((await world.member.get(letters)).body.items).toEqual([]);
}, 60_000);
