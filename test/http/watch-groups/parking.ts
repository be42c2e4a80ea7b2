import { clientOf } from '#test/http/client.ts';
import { describe, expect, test } from 'vitest';

import { uniqueName } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { deliveriesOf, isOf, useGroups } from '#test/http/watch-groups/world.ts';
import type { SseClient } from '#test/support/sse-client.ts';

export function parking(open: OpenTarget): void {
  const world = useGroups(open);

  describe('an event that was delivered too often', () => {
    test('is parked, and its lane goes on', async () => {
      const client = await world.join(uniqueName('parking'), { start: 'now', maxAttempts: '2' });
      const uid = await world.write(uniqueName('w'), 3);
      await client.waitFor(isOf(uid, 2));
      expect(await world.nack(client.events.find(isOf(uid, 0))?.id)).toBe('Acked');
      expect(await world.nack((await client.waitFor(isOf(uid, 0))).id)).toBe('Acked');
      // The others were refused beside it once, and have their last attempt alone too.
      for (const size of [1, 2]) {
        const { id } = await client.waitFor(({ data }) => data.uid === uid && data.data.spec.size === size);
        expect(await world.ack(id)).toBe('Acked');
      }
      expect(deliveriesOf(client, uid)).toEqual(['0', '1', '2', '0 again 2', '1 again 2', '2 again 2']);
    });

    test('is parked after one attempt if one is allowed', async () => {
      const client = await world.join(uniqueName('parking'), { start: 'now', maxAttempts: '1' });
      const uid = await world.write(uniqueName('w'), 2);
      await refuse(client, uid);
      const next = await client.waitFor(isOf(uid, 1));
      expect(next.data.attempt).toBe(1);
      expect(await world.ack(next.id)).toBe('Acked');
      expect(deliveriesOf(client, uid)).toEqual(['0', '1']);
    });
  });

  describe('a dead letter', () => {
    /** A member, and the dead letter of an object's first event; the second is delivered. */
    async function parked(group: string): Promise<{ client: SseClient; uid: string; letters: string; id: string }> {
      const client = await world.join(group, { start: 'now', maxAttempts: '1' });
      const uid = await world.write(uniqueName('w'), 2);
      await refuse(client, uid);
      await client.waitFor(isOf(uid, 1));
      const letters = `/watch/v1/groups/${group}/deadletters`;
      const { items } = (await world.member.get(letters)).body;
      expect(items).toHaveLength(1);
      expect(items[0]).toMatchObject({ attempts: 1, tenant: world.tenant });
      return { client, uid, letters, id: items[0].id };
    }

    const act = async (path: string): Promise<number> => {
      const admin = await clientOf(world.target, { ...world.owner, roles: ['admin'] });
      return (await admin.post(path, { reason: 'the consumer was mended' })).status;
    };

    test('that is asked for again is delivered ahead of its lane, and says so; its ack ends it and nothing else', async () => {
      const { client, uid, letters, id } = await parked(uniqueName('parking'));
      expect(await act(`${letters}/${id}/retry`)).toBe(200);
      const again = await client.waitFor(isOf(uid, 0));
      expect([again.event, again.data.deadletter]).toEqual(['ADDED', id]);
      expect(await world.ack(again.id)).toBe('Acked');
      expect((await world.member.get(letters)).body.items).toEqual([]);
      expect(await world.ack(again.id)).toBe('Duplicate');
      const next = client.events.find(isOf(uid, 1));
      expect(await world.ack(next?.id)).toBe('Acked');
      expect(deliveriesOf(client, uid).map((line) => line.slice(0, 1))).toEqual(['0', '1', '0']);
    });

    test('that is refused again stays, until it is asked for again', async () => {
      const { client, uid, letters, id } = await parked(uniqueName('parking'));
      for (let attempt = 2; attempt <= 3; attempt += 1) {
        expect(await act(`${letters}/${id}/retry`)).toBe(200);
        expect(await world.nack((await client.waitFor(isOf(uid, 0))).id)).toBe('Acked');
        expect((await world.member.get(letters)).body.items).toMatchObject([{ id, attempts: attempt }]);
      }
    });

    test('that ends its consumers is delivered three times, and then waits until it is asked for again', async () => {
      const group = uniqueName('parking');
      const { client, uid, letters, id } = await parked(group);
      expect(await world.ack(client.events.find(isOf(uid, 1))?.id)).toBe('Acked');
      expect(await act(`${letters}/${id}/retry`)).toBe(200);
      let consumer = client;
      const attempts: number[] = [];
      for (let turn = 1; turn <= 3; turn += 1) {
        attempts.push((await consumer.waitFor(({ data }) => data.deadletter === id)).data.attempt);
        await world.leave(consumer, group);
        consumer = await world.join(group, { maxAttempts: '1' });
      }
      expect(attempts).toEqual([2, 3, 4]);
      await consumer.waitFor(isOf(await world.write(uniqueName('w'), 1)));
      expect(consumer.events.filter(({ data }) => data.deadletter !== undefined)).toEqual([]);
      expect((await world.member.get(letters)).body.items).toMatchObject([{ id, attempts: 4 }]);
      expect(await act(`${letters}/${id}/retry`)).toBe(200);
      const again = await consumer.waitFor(({ data }) => data.deadletter === id);
      expect(again.data.attempt).toBe(5);
      expect(await world.ack(again.id)).toBe('Acked');
    });

    test('that is asked for again tells of the lane as it is now, and keeps nothing of earlier deliveries', async () => {
      const { client, uid, letters, id } = await parked(uniqueName('parking'));
      expect(await world.nack(client.events.find(isOf(uid, 1))?.id)).toBe('Acked');
      await expect.poll(async () => (await world.member.get(letters)).body.items.length, { timeout: 10_000 }).toBe(2);
      const [{ event }] = (await world.member.get(letters)).body.items;
      expect(Object.keys(event)).not.toContain('fence');
      expect(await act(`${letters}/${id}/retry`)).toBe(200);
      const again = await client.waitFor(({ data }) => data.deadletter === id);
      const [{ lane, fence }] = client.events.filter(isOf(uid, 1)).map(({ data }) => data);
      expect(again.data).toMatchObject({ ...event, lane, attempt: 2 });
      expect(Number(again.data.fence)).toBeGreaterThan(Number(fence));
    });

    test('that is skipped is gone, whatever is acked later', async () => {
      const { client, uid, letters, id } = await parked(uniqueName('parking'));
      expect(await act(`${letters}/${id}/skip`)).toBe(200);
      expect((await world.member.get(letters)).body.items).toEqual([]);
      expect(await world.ack(client.events.find(isOf(uid, 1))?.id)).toBe('Acked');
      expect(await act(`${letters}/${id}/retry`)).toBe(404);
    });
  });

  /** Refuses an object's first event. */
  async function refuse(client: SseClient, uid: string): Promise<void> {
    expect(await world.nack((await client.waitFor(isOf(uid, 0))).id)).toBe('Acked');
  }
}
