import { describe, expect, test } from 'vitest';

import { deliveriesOf, isOf, upTo, useGroups } from '#test/http/watch-groups/world.ts';
import { uniqueName } from '#test/http/resource-api/world.ts';
import { expectFailure, readyOf } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function delivery(open: OpenTarget): void {
  const world = useGroups(open);
  const newGroup = (): string => uniqueName('delivery');

  test('a filter that fails ends the member, the group stays where it is, and goes on with one that does not', async () => {
    const group = newGroup();
    const first = await world.write(uniqueName('w'), 1);
    for (let round = 0; round < 3; round += 1) {
      const failing = await world.join(group, { filter: 'event.data.spec.size > 0', maxAttempts: '2' });
      const { data } = await failing.waitFor(({ event }) => event === 'ERROR');
      expectFailure(data, 400, 'BadRequest', 'event.data.spec.size > 0');
      expect(await failing.ended).toBeUndefined();
    }
    const failure = async (): Promise<unknown> =>
      (await world.member.get(`/watch/v1/groups/${group}`)).body.failure ?? 'none';
    await expect.poll(failure).toEqual({
      message: expect.stringContaining('event.data.spec.size > 0'),
      at: expect.stringMatching(/^20\d\d-/),
    });
    const uid = await world.write(uniqueName('w'), 3);
    const filter = `event.uid == "${first}" || (event.uid == "${uid}" && has(event.data.spec.size))`;
    const client = await world.join(group, { filter });
    await Promise.all([client.waitFor(isOf(first)), client.waitFor(isOf(uid, 2))]);
    expect(deliveriesOf(client, uid)).toEqual(['1', '2']);
    expect(await failure()).toBe('none');
  });

  describe('a member', () => {
    test('is told what it is a member of, and whether it made the group', async () => {
      const group = newGroup();
      const first = await world.join(group);
      const second = await world.join(group);
      expect(readyOf(first)).toEqual({
        event: 'READY',
        id: undefined,
        data: {
          protocol: 1,
          mode: 'group',
          tenants: expect.arrayContaining([world.tenant]),
          group: { name: group, member: expect.stringMatching(/^\d+$/), isNew: true },
        },
      });
      expect(readyOf(second).data.group).toMatchObject({ name: group, isNew: false });
    });

    test('gets each event with its lane, its fence and the attempt, under an ack token; those of an object in order', async () => {
      const uid = await world.write(uniqueName('w'), 5);
      const client = await world.join(newGroup());
      const last = await client.waitFor(isOf(uid, 4));
      expect(deliveriesOf(client, uid)).toEqual(upTo(5));
      const events = client.events.filter(isOf(uid));
      expect(new Set(events.map(({ data }) => data.lane)).size).toBe(1);
      expect(new Set(events.map(({ id }) => id)).size).toBe(5);
      expect(last.data).toMatchObject({
        lane: expect.stringMatching(/^\d+\.(\d|1[0-5])$/),
        fence: expect.stringMatching(/^\d+$/),
        attempt: 1,
        tenant: world.tenant,
      });
    });

    test('of a group that starts now gets nothing that was before, and everything after', async () => {
      const before = await world.write(uniqueName('w'), 1);
      const early = await world.join(newGroup());
      await early.waitFor(isOf(before));
      const client = await world.join(newGroup(), { start: 'now' });
      const after = await world.write(uniqueName('w'), 1);
      await client.waitFor(isOf(after));
      expect(client.events.filter(isOf(before))).toEqual([]);
    });

    test('that comes back gets what was not acked again, as the second attempt, and nothing that was', async () => {
      const group = newGroup();
      const uid = await world.write(uniqueName('w'), 4);
      const client = await world.join(group, { start: 'earliest' });
      const second = await client.waitFor(isOf(uid, 1));
      await client.waitFor(isOf(uid, 3));
      expect(await world.ack(second.id)).toBe('Acked');
      await world.leave(client, group);
      const again = await world.join(group);
      await again.waitFor(isOf(uid, 3));
      expect(deliveriesOf(again, uid)).toEqual(['2 again 2', '3 again 2']);
    });
  });

  describe('the window', () => {
    test('bounds what a lane has unacked, 64 if nobody says otherwise; an ack makes room, and other lanes go on', async () => {
      const client = await world.join(newGroup(), { start: 'now' });
      const uid = await world.write(uniqueName('w'), 70);
      const { data, id } = await client.waitFor(isOf(uid, 63));
      await otherLane(data.lane);
      expect(deliveriesOf(client, uid)).toEqual(upTo(64));
      expect(await world.ack(client.events.find(isOf(uid, 0))?.id)).toBe('Acked');
      await client.waitFor(isOf(uid, 64));
      await otherLane(data.lane);
      expect(deliveriesOf(client, uid)).toEqual(upTo(65));
      expect(await world.ack(id)).toBe('Acked');
      await client.waitFor(isOf(uid, 69));
      expect(deliveriesOf(client, uid)).toEqual(upTo(70));

      /** Passes an event of another lane that was written after all of the object's. */
      async function otherLane(lane: string): Promise<void> {
        for (;;) {
          const mark = await world.write(uniqueName('mark'), 1);
          const seen = client.waitFor(isOf(mark), 2_000).catch(() => undefined);
          const event = await seen;
          if (event && event.data.lane !== lane) return;
        }
      }
    });

    test('of one is one after the other', async () => {
      const client = await world.join(newGroup(), { window: '1', start: 'now' });
      const uid = await world.write(uniqueName('w'), 3);
      for (const size of [0, 1, 2]) {
        const event = await client.waitFor(isOf(uid, size));
        expect(deliveriesOf(client, uid)).toEqual(upTo(size + 1));
        expect(await world.ack(event.id)).toBe('Acked');
      }
    });

    test('holds back what was written long ago as it does what is new: a thousand events come in their order', async () => {
      const names = Array.from({ length: 10 }, () => uniqueName('w'));
      const uids = await Promise.all(names.map((name) => world.write(name, 100)));
      const client = await world.join(newGroup(), { window: '8' });
      const left = new Set(uids);
      while (left.size > 0) {
        const event = await client.next();
        if (event.id !== undefined) await world.ack(event.id);
        if (event.data.data?.spec.size === 99) left.delete(event.data.uid);
      }
      for (const uid of uids) expect(deliveriesOf(client, uid)).toEqual(upTo(100));
    });
  });

  describe('a nack', () => {
    test('has the event and those behind it delivered again, no sooner than its delay', async () => {
      const client = await world.join(newGroup(), { start: 'now' });
      const uid = await world.write(uniqueName('w'), 3);
      const second = await client.waitFor(isOf(uid, 1));
      await client.waitFor(isOf(uid, 2));
      expect(await world.ack(client.events.find(isOf(uid, 0))?.id)).toBe('Acked');
      const atMs = performance.now();
      expect(await world.nack(second.id, 700)).toBe('Acked');
      const again = await client.waitFor(isOf(uid, 1));
      expect(performance.now() - atMs).toBeGreaterThanOrEqual(690);
      await client.waitFor(isOf(uid, 2));
      expect(deliveriesOf(client, uid)).toEqual(['0', '1', '2', '1 again 2', '2 again 2']);
      expect(BigInt(again.data.fence)).toBeGreaterThan(BigInt(second.data.fence));
      expect(await world.ack(second.id)).toBe('Fenced');
      expect(await world.ack(again.id)).toBe('Acked');
    });

    test('without a delay has it delivered again at once', async () => {
      const client = await world.join(newGroup(), { start: 'now' });
      const uid = await world.write(uniqueName('w'), 1);
      expect(await world.nack((await client.waitFor(isOf(uid))).id)).toBe('Acked');
      expect((await client.waitFor(isOf(uid))).data.attempt).toBe(2);
    });

    test('again and again has events delivered one at a time, so that those behind it collect no attempts', async () => {
      const client = await world.join(newGroup(), { start: 'now' });
      const uid = await world.write(uniqueName('w'), 3);
      await client.waitFor(isOf(uid, 2));
      for (let attempt = 1; attempt <= 4; attempt += 1) {
        const head = client.events.findLast(isOf(uid, 0));
        expect(await world.nack(head?.id)).toBe('Acked');
        await client.waitFor(isOf(uid, attempt === 1 ? 2 : 0));
      }
      const head = client.events.findLast(isOf(uid, 0));
      expect(head?.data.attempt).toBe(5);
      expect(await world.ack(head?.id)).toBe('Acked');
      expect(await world.ack((await client.waitFor(isOf(uid, 1))).id)).toBe('Acked');
      await client.waitFor(isOf(uid, 2));
      const attempts = client.events.filter(isOf(uid, 2)).map(({ data }) => data.attempt);
      // Two times beside the head; from its third on, that one came alone.
      expect(attempts).toEqual([1, 2, 3]);
    });
  });
}
