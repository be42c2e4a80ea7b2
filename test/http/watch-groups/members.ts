import { describe, expect, test, vi } from 'vitest';

import { uniqueName } from '#test/http/resource-api/world.ts';
import type { Grant, OpenTarget } from '#test/http/target.ts';
import { ACKS, deliveriesOf, isOf, statusOf, useGroups } from '#test/http/watch-groups/world.ts';
import { changesOf, expectFailure, readyOf } from '#test/http/watch/world.ts';
import { clientOf } from '#test/http/client.ts';
import type { SseClient } from '#test/support/sse-client.ts';

export function members(open: OpenTarget): void {
  const world = useGroups(open);
  const newGroup = (): string => uniqueName('members');

  /** Which of them an event of an object came to. */
  async function holderOf(clients: readonly SseClient[], uid: string, size: number = 0): Promise<SseClient> {
    return vi.waitFor(
      () => {
        const holder = clients.find((client) => client.events.some(isOf(uid, size)));
        if (holder) return holder;
        throw new Error(`no member has event ${size} of ${uid}`);
      },
      { timeout: 10_000, interval: 10 },
    );
  }

  /** Writes objects until one comes to this member, unacked; those that come to others are acked. Gives its uid. */
  async function untilHeldBy(holder: SseClient, others: readonly SseClient[]): Promise<string> {
    for (;;) {
      const uid = await world.write(uniqueName('w'), 1);
      const found = await holderOf([holder, ...others], uid);
      if (found === holder) return uid;
      await world.ack(found.events.find(isOf(uid))?.id);
    }
  }

  describe('two members', () => {
    test('share the events: each comes to one of them, and those of an object to the same', async () => {
      const group = newGroup();
      const first = await world.join(group, { start: 'now' });
      const second = await world.join(group);
      await untilHeldBy(second, [first]);
      const uids = await Promise.all(Array.from({ length: 30 }, () => world.write(uniqueName('w'), 2)));
      const holders = await Promise.all(uids.map((uid) => holderOf([first, second], uid, 1)));
      expect(new Set(holders).size).toBe(2);
      for (const uid of uids) {
        expect([first, second].map((client) => deliveriesOf(client, uid).join()).toSorted()).toEqual(['', '0,1']);
      }
    });

    test('take over from each other, at once when one leaves, and what it acks then is refused', async () => {
      const group = newGroup();
      const first = await world.join(group, { start: 'now' });
      const second = await world.join(group);
      const uid = await untilHeldBy(second, [first]);
      const unacked = second.events.find(isOf(uid));
      await second.close();
      const again = await first.waitFor(isOf(uid));
      expect(again.data).toMatchObject({ attempt: 2, lane: unacked?.data.lane });
      const late = await world.member.post(ACKS, { acks: [unacked?.id] });
      expect(late.status).toBe(409);
      expectFailure(late.body, 409, 'Fenced', 'begun anew');
      expect(late.body.details.results).toEqual([{ status: 'Fenced' }]);
      expect(await world.ack(again.id)).toBe('Acked');
      // Duplicates are harmless, whoever sends them.
      expect(await world.ack(unacked?.id, again.id)).toBe('Duplicate Duplicate');
    });
  });

  describe('a member that leaves something unacked', () => {
    test('for longer than it said is ended with a Timeout, and the others get it', async () => {
      const group = newGroup();
      const slow = await world.join(group, { start: 'now', ackWaitMs: '1000' });
      const uid = await world.write(uniqueName('w'), 1);
      const { id } = await slow.waitFor(isOf(uid));
      const { data } = await slow.waitFor(({ event }) => event === 'ERROR');
      expectFailure(data, 504, 'Timeout', /unacked for 1000 ms .*"ackWaitMs"/);
      expect(await slow.ended).toBeUndefined();
      const next = await world.join(group);
      expect((await next.waitFor(isOf(uid))).data.attempt).toBe(2);
      expect(await world.ack(id)).toBe('Fenced');
    });

    test('and acks the one before is not: each event has its own time', async () => {
      const client = await world.join(newGroup(), { start: 'now', ackWaitMs: '1000' });
      const uid = await world.write(uniqueName('w'), 4);
      for (const size of [0, 1, 2, 3]) {
        const { id } = await client.waitFor(isOf(uid, size));
        await new Promise((resolve) => setTimeout(resolve, 600));
        expect(await world.ack(id)).toBe('Acked');
      }
      expect(client.isEnded).toBe(false);
    });
  });

  describe('what members select', () => {
    test('is the same for all, else 409; without a living member, the next one says anew', async () => {
      const group = newGroup();
      const first = await world.join(group, { kinds: 'Widget' });
      for (const query of [{}, { kinds: 'Vault' }, { kinds: 'Widget', labelSelector: 'a=b' }]) {
        const { status, body } = await world.refused({ group, ...query });
        expect(status).toBe(409);
        expectFailure(body, 409, 'Conflict', 'its members select ');
      }
      await world.join(group, { kinds: 'Widget' });
      await first.close();
      const { status } = await world.refused({ group, kinds: 'Vault' });
      expect(status).toBe(409);
    });

    test('decides what is delivered; what is not selected is passed over', async () => {
      const client = await world.join(newGroup(), { start: 'now', labelSelector: 'team=a' });
      await world.write(uniqueName('w'), 2);
      const { body } = await world.editor.post(world.widgets, {
        metadata: { name: uniqueName('w'), labels: { team: 'a' } },
        spec: {},
      });
      const { id } = await client.waitFor(isOf(body.metadata.uid));
      expect(changesOf(client)).toHaveLength(1);
      expect(await world.ack(id)).toBe('Acked');
    });
  });

  describe('groups of the same name', () => {
    test('of two owners, two audiences or two sets of tenants have nothing to do with each other', async () => {
      const group = newGroup();
      const mine = await world.join(group, { start: 'now' });
      const theirs: Grant = { ...world.owner, subject: uniqueName('other') };
      const wide: Grant = { ...world.owner, tenants: [world.tenant, 'nowhere'] };
      const others = [
        await world.join(group, { start: 'now' }, theirs),
        await world.join(group, { start: 'now' }, wide),
      ];
      expect(others.map((other) => readyOf(other).data.group.isNew)).toEqual([true, true]);
      const uid = await world.write(uniqueName('w'), 1);
      const { id } = await mine.waitFor(isOf(uid));
      for (const other of others) await other.waitFor(isOf(uid));
      const stranger = await clientOf(world.target, theirs);
      const answer = await stranger.post(ACKS, { acks: [id] });
      expectFailure(answer.body, 404, 'NotFound', 'no group of yours');
      expect(statusOf(await world.member.post(ACKS, { acks: [id] }))).toBe('Acked');
    });
  });
}
