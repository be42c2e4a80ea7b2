import { describe, expect, test } from 'vitest';

import { clientOf } from '#test/http/client.ts';
import { expectStatus, requestDeletion, uniqueName } from '#test/http/resource-api/world.ts';
import type { Grant, OpenTarget } from '#test/http/target.ts';
import { ACKS, isOf, statusOf, useGroups } from '#test/http/watch-groups/world.ts';
import { changesOf, createTenant } from '#test/http/watch/world.ts';
import type { SseClient, SseEvent } from '#test/support/sse-client.ts';

export function tenants(open: OpenTarget): void {
  const world = useGroups(open);
  /** Until the member's stream ends. */
  const ackAll = async (member: SseClient): Promise<void> => {
    for (let next = await arrival(member); next; next = await arrival(member)) if (next.id) await ack(next.id);
  };
  const everyone = (): Grant => ({ roles: ['viewer'], tenants: '*', subject: world.owner.subject ?? '' });

  /** With a token of all tenants. */
  async function ack(id: string | undefined): Promise<string> {
    return statusOf(await (await clientOf(world.target, everyone())).post(ACKS, { acks: [id] }));
  }

  describe('a group of all tenants', () => {
    test('gets new ones from their beginning, without reconnecting', async () => {
      const client = await world.join(uniqueName('tenants'), { start: 'now', kinds: 'Widget' }, everyone());
      for (let round = 0; round < 5; round += 1) {
        const { name, widgets } = await createTenant(world);
        const { body } = await world.admin.post(widgets, { metadata: { name: 'first' } });
        const { data, id } = await client.waitFor(isOf(body.metadata.uid));
        expect([data.tenant, data.seq, data.attempt]).toEqual([name, '1', 1]);
        expect(await ack(id)).toBe('Acked');
      }
    });

    test('is told of the end of one once all of it is acked, without an id: there is nothing to ack', async () => {
      const client = await world.join(uniqueName('tenants'), { start: 'now' }, everyone());
      const { name, widgets } = await createTenant(world);
      await world.admin.post(widgets, { metadata: { name: 'w' } });
      await world.admin.delete(`${widgets}/w`);
      await requestDeletion(world, name);
      const deleted = await client.waitFor(({ event, data }) => event === 'DELETED' && data.tenant === name);
      expect(await ack(deleted.id)).toBe('Acked');
      // Others' tenants live in this deployment too.
      const gone = await client.waitFor(({ event, data }) => event === 'BOOKMARK' && data.tenant === name, 30_000);
      expect(gone).toEqual({ event: 'BOOKMARK', id: undefined, data: { reason: 'TenantGone', tenant: name } });
      expect(changesOf(client).filter(({ data }) => data.tenant === name)).toHaveLength(2);
    });
  });

  describe('a token that does not see a tenant of its group', () => {
    test('confirms and refuses nothing of that tenant: it is unknown, as what was never delivered', async () => {
      const client = await world.join(uniqueName('tenants'), { start: 'now', kinds: 'Widget' }, everyone());
      const other = await createTenant(world);
      const { body } = await world.admin.post(other.widgets, { metadata: { name: 'w' } });
      const { id: hidden } = await client.waitFor(isOf(body.metadata.uid));
      const { id: seen } = await client.waitFor(isOf(await world.write(uniqueName('w'), 1)));
      const ofOneTenant = world.member;
      expectStatus(await ofOneTenant.post(ACKS, { acks: [hidden] }), 404, 'NotFound', 'no group of yours');
      expectStatus(await ofOneTenant.post(ACKS, { nacks: [{ token: hidden }] }), 404, 'NotFound', 'no group of yours');
      expect(await world.ack(hidden, seen)).toBe('Unknown Acked');
      expect(await ack(hidden)).toBe('Acked');
    });
  });

  describe('a group of named tenants', () => {
    test('ends its members when they are deleted and all is acked, as a watch of them ends', async () => {
      const [first, second] = [await createTenant(world), await createTenant(world)];
      const group = uniqueName('tenants');
      const query = { tenants: `${first.name},${second.name}`, start: 'now' };
      const members = [await world.join(group, query, everyone()), await world.join(group, query, everyone())];
      const acks = members.map(ackAll);
      for (const { name, widgets } of [first, second]) {
        await world.admin.post(widgets, { metadata: { name: 'w' } });
        await world.admin.delete(`${widgets}/w`);
        await requestDeletion(world, name);
      }
      await Promise.all(acks);
      for (const member of members) {
        expect(await member.ended).toBeUndefined();
        expect(goneOf(member).toSorted()).toEqual([first.name, second.name].toSorted());
        expect(member.events.filter(({ event }) => event === 'ERROR')).toEqual([]);
      }
      expect(members.flatMap((member) => changesOf(member))).toHaveLength(4);
      const refused = await world.refused({ group, ...query }, everyone());
      expect([refused.status, refused.body.reason]).toEqual([404, 'NotFound']);
    });

    test('ends also those members that there was no lane for', async () => {
      const { name } = await createTenant(world);
      const group = uniqueName('tenants');
      const query = { tenants: name, start: 'now' };
      const members: SseClient[] = [];
      for (let count = 0; count < 17; count += 1) members.push(await world.join(group, query, everyone()));
      await requestDeletion(world, name);
      for (const member of members) {
        expect(await member.waitFor(({ data }) => data.reason === 'TenantGone', 30_000)).toMatchObject({
          data: { tenant: name },
        });
        expect(await member.ended).toBeUndefined();
      }
    });
  });

  describe('a group whose selection matches nothing', () => {
    test('moves all the same: it is not behind', async () => {
      const group = uniqueName('tenants');
      await world.join(group, { kinds: 'Vault', tenants: world.tenant });
      await world.write(uniqueName('w'), 20);
      const state = async (): Promise<unknown> =>
        (await world.member.get(`/watch/v1/groups/${group}?tenants=${world.tenant}`)).body.streamLag;
      await expect.poll(state, { timeout: 20_000 }).toBe(0);
    });
  });
}

/** Undefined once the stream has ended. */
function arrival(member: SseClient): Promise<SseEvent | undefined> {
  return member.waitFor(() => true, 30_000).catch(() => undefined);
}

function goneOf({ events }: SseClient): string[] {
  return events.filter(({ data }) => data.reason === 'TenantGone').map(({ data }) => data.tenant);
}
