import { expect, test, vi } from 'vitest';
import { Conflict, type Delivery, NotFound, Unauthorized } from 'plumbline/client';
import { useWays } from '#test/http/client/cutting.ts';
import { namesOf, useMembers } from '#test/http/client/members.ts';
import { removeTenant, uniqueName, useWorld, type World } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function consuming(open: OpenTarget): void {
  const world = useWorld(open);
  const join = useMembers(world);
  const { way, front: openFront } = useWays(world);

  /** A tenant of the test's own, since a new group begins with its tenants' beginning. */
  async function ownTenant(): Promise<{
    tenants: string[];
    grant: typeof EVERYONE;
    create: (count: number, prefix?: string) => Promise<string[]>;
  }> {
    const { name, widgets } = await createTenant(world);
    return {
      tenants: [name],
      grant: EVERYONE,
      create: (count, prefix) => createWidgets(world, widgets, count, prefix),
    };
  }

  test('handles every change once, and where it ended in peace another member goes on', async () => {
    const { create, ...of } = await ownTenant();
    const group = uniqueName('g');
    const first = await join({ ...of, group });
    const before = await create(20);
    await first.until(() => first.handled.length === 20);
    expect(await first.leave()).toBeUndefined();
    const after = await create(5, 'after-');
    const second = await join({ ...of, group });
    await second.until(() => second.handled.length === 5);
    expect(namesOf(first.handled).toSorted()).toEqual(before.toSorted());
    expect(namesOf(second.handled).toSorted()).toEqual(after.toSorted());
    expect([...first.handled, ...second.handled].every(({ attempt }) => attempt === 1)).toBe(true);
    expect([first.joins[0]?.isNew, second.joins[0]?.isNew]).toEqual([true, false]);
  });

  test('handles the changes of one object one after the other, and those of others beside them', async () => {
    const { create, ...of } = await ownTenant();
    const running = new Map<string, number>();
    let most = 0;
    const versions: string[] = [];
    const member = await join({
      ...of,
      group: uniqueName('g'),
      async handler({ event }) {
        const now = (running.get(event.uid) ?? 0) + 1;
        running.set(event.uid, now);
        if (now > 1) throw new Error('two at once');
        most = Math.max(
          most,
          [...running.values()].reduce((sum, count) => sum + count, 0),
        );
        // As long as it takes for others to begin.
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        running.set(event.uid, now - 1);
        if (event.subject.endsWith('/w0')) versions.push(event.resourceversion);
      },
    });
    const names = await create(30);
    for (let size = 0; size < 10; size += 1) {
      await world.admin.patch(`/apis/example.dev/v1/namespaces/${of.tenants[0]}/widgets/w0`, { spec: { size } });
    }
    await member.until(() => member.handled.length === names.length + 10);
    expect(member.failures).toEqual([]);
    expect(most).toBeGreaterThan(1);
    expect(versions).toEqual(versions.toSorted((a, b) => Number(a) - Number(b)));
  });

  test('confirms many with one call', async () => {
    const { create, ...of } = await ownTenant();
    await create(300);
    const front = await openFront();
    const member = await join({ ...of, url: front.url, group: uniqueName('g'), window: 64 });
    await member.until(() => member.handled.length === 300);
    await member.leave();
    const calls = front.requests.filter((path) => path === '/watch/v1/acks').length;
    expect(calls).toBeGreaterThan(0);
    expect(calls).toBeLessThan(100);
  });

  test('what a handler throws at comes again later, and holds up its own lane alone', async () => {
    const { create, ...of } = await ownTenant();
    const names = await create(40);
    const member = await join({
      ...of,
      group: uniqueName('g'),
      handler({ object, attempt }) {
        if (object.metadata.name === 'w7' && attempt < 3) throw new Error('not yet');
      },
    });
    await member.until(() => namesOf(member.handled).includes('w7'));
    await member.until(() => new Set(namesOf(member.handled)).size === names.length);
    const seen = member.handled.find(({ object }) => object.metadata.name === 'w7');
    expect(seen?.attempt).toBe(3);
    expect(member.failures.map(({ delivery }) => delivery.attempt)).toEqual([1, 2]);
    expect(member.failures.every(({ retryInMs }) => retryInMs !== undefined && retryInMs <= 2_000)).toBe(true);
    const twice = names.filter((name) => namesOf(member.handled).filter((other) => other === name).length > 1);
    expect(twice).toEqual([]);
  });

  test('what fails to the end is set aside, and its lane goes on', async () => {
    const { create, ...of } = await ownTenant();
    const group = uniqueName('g');
    await create(1);
    const member = await join({
      ...of,
      group,
      maxAttempts: 3,
      handler({ type }) {
        if (type === 'ADDED') throw new Error('never');
      },
    });
    await member.until(() => member.failures.length === 1);
    const [tenant = ''] = of.tenants;
    await world.admin.patch(`/apis/example.dev/v1/namespaces/${tenant}/widgets/w0`, { spec: { size: 1 } });
    await member.until(() => member.handled.length === 1);
    expect(member.handled[0]?.type).toBe('MODIFIED');
    expect(member.failures.map(({ delivery }) => delivery.attempt)).toEqual([1, 2, 3]);
    expect(member.failures.map(({ retryInMs }) => retryInMs === undefined)).toEqual([false, false, true]);
  });

  test('what was set aside and is asked for again is handled and confirmed, also when its lane began anew in between', async () => {
    const { create, ...of } = await ownTenant();
    const [tenant = ''] = of.tenants;
    const group = uniqueName('g');
    const letters = `/watch/v1/groups/${group}/deadletters`;
    const query = `?tenants=${tenant}`;
    let isMended = false;
    let refusals = 1;
    const member = await join({
      ...of,
      group,
      maxAttempts: 2,
      handler({ type }) {
        if (type === 'ADDED' && !isMended) throw new Error('never');
        if (type === 'MODIFIED' && refusals-- > 0) throw new Error('not yet');
      },
    });
    await create(1);
    await member.until(() => member.failures.length === 2);
    await world.admin.patch(`/apis/example.dev/v1/namespaces/${tenant}/widgets/w0`, { spec: { size: 1 } });
    await member.until(() => member.handled.length === 1);
    expect(member.failures.map(({ delivery }) => delivery.type)).toEqual(['ADDED', 'ADDED', 'MODIFIED']);
    isMended = true;
    const { items } = (await world.admin.get(letters + query)).body;
    const retry = await world.admin.post(`${letters}/${items[0].id}/retry${query}`, { reason: 'it was mended' });
    expect(retry.status, retry.text).toBe(200);
    await member.until(() => member.handled.length === 2);
    expect(member.handled[1]).toMatchObject({ type: 'ADDED', attempt: 3, lane: member.handled[0]?.lane });
    await vi.waitFor(async () => expect((await world.admin.get(letters + query)).body.items).toEqual([]), 10_000);
    expect(member.retries).toEqual([]);
  });

  test('over cut connections every change is handled, and none of an object before an earlier one', async () => {
    const { create, ...of } = await ownTenant();
    const { url, proxy } = await way();
    const path = `/apis/example.dev/v1/namespaces/${of.tenants[0]}/widgets`;
    const member = await join({ ...of, url, group: uniqueName('g') });
    const names = await create(10);
    for (let round = 1; round <= 10; round += 1) {
      await member.until(() => member.joins.length >= round);
      await Promise.all(names.map((name) => world.admin.patch(`${path}/${name}`, { spec: { size: round } })));
      proxy.cut();
      await member.until(() => member.retries.length >= round);
    }
    const isLast = ({ object }: Delivery): boolean => object.spec['size'] === 10;
    await member.until(() => new Set(namesOf(member.handled.filter(isLast))).size === names.length);
    for (const name of names) {
      const seqs = member.handled.filter(({ object }) => object.metadata.name === name).map(({ event }) => event.seq);
      const firsts = [...new Set(seqs)].map(Number);
      expect(firsts).toEqual(firsts.toSorted((a, b) => a - b));
      expect(firsts).toHaveLength(11);
    }
    await member.leave();
  });

  test('a member that comes shares the work, and one that goes leaves all of it to the other', async () => {
    const { create, ...of } = await ownTenant();
    const group = uniqueName('g');
    const first = await join({ ...of, group });
    await first.until(() => first.joins.length === 1);
    const second = await join({ ...of, group });
    await second.until(() => second.joins.length === 1);
    let count = 0;
    await expect
      .poll(
        async () => {
          await create(16, `r${(count += 1)}-`);
          return second.handled.length > 0;
        },
        { timeout: 20_000 },
      )
      .toBe(true);
    const lanesOf = (deliveries: readonly Delivery[]): Set<string> => new Set(deliveries.map(({ lane }) => lane));
    expect(lanesOf(first.handled).size).toBeGreaterThan(0);
    await first.leave();
    const before = second.handled.length;
    await create(32);
    await second.until(() => second.handled.length >= before + 32);
    const ids = [...first.handled, ...second.handled].map(({ event }) => event.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('a member that takes too long loses its lanes: it is told, and its late word counts for nothing', async () => {
    const { create, ...of } = await ownTenant();
    const group = uniqueName('g');
    const goOn = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    let isOutdated = false;
    const slow = await join({
      ...of,
      group,
      ackWaitMs: 1_000,
      async handler(_, { signal }) {
        signal.addEventListener('abort', () => (isOutdated = true));
        begun.resolve();
        await goOn.promise;
      },
    });
    await create(1);
    await begun.promise;
    const other = await join({ ...of, group, ackWaitMs: 1_000 });
    await other.until(() => other.handled.length === 1);
    expect(other.handled[0]?.attempt).toBe(2);
    expect(isOutdated).toBe(true);
    expect(slow.retries[0]?.message).toContain('an event lay unacked for 1000 ms');
    goOn.resolve();
    await slow.until(() => slow.handled.length === 1);
    await create(16, 'next-');
    await expect.poll(() => slow.handled.length + other.handled.length, { timeout: 20_000 }).toBe(18);
  });

  test('that ends while a handler works waits for it, and confirms it', async () => {
    const { create, ...of } = await ownTenant();
    const group = uniqueName('g');
    const begun = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const first = await join({
      ...of,
      group,
      concurrency: 1,
      async handler() {
        begun.resolve();
        await goOn.promise;
      },
    });
    const names = await create(3);
    await begun.promise;
    const leaving = first.leave();
    goOn.resolve();
    expect(await leaving).toBeUndefined();
    expect(first.handled).toHaveLength(1);
    const second = await join({ ...of, group });
    await second.until(() => second.handled.length === names.length - 1);
    expect([...namesOf(first.handled), ...namesOf(second.handled)].toSorted()).toEqual(names);
  });

  test('tells of a tenant that is gone, once its changes are handled, and ends with the last that it named', async () => {
    const { create, ...of } = await ownTenant();
    const [tenant = ''] = of.tenants;
    const gone: string[] = [];
    const member = await join({
      ...of,
      group: uniqueName('g'),
      onTenantGone: (name) => void gone.push(`${name} ${member.handled.length}`),
    });
    await create(1);
    await world.admin.delete(`/apis/example.dev/v1/namespaces/${tenant}/widgets/w0`);
    await removeTenant(world, tenant);
    await member.until(() => gone.length > 0);
    expect(gone).toEqual([`${tenant} 2`]);
    expect(await member.ended).toBeUndefined();
    expect(member.retries).toEqual([]);
  });

  test('ends with what a callback throws, and leaves its work to others', async () => {
    const { create, ...of } = await ownTenant();
    const group = uniqueName('g');
    const broken = new Error('the log of failures is full');
    const member = await join({
      ...of,
      group,
      handler() {
        throw new Error('not now');
      },
      onFailure() {
        throw broken;
      },
    });
    const names = await create(1);
    expect(await member.ended).toBe(broken);
    const other = await join({ ...of, group });
    await other.until(() => other.handled.length === 1);
    expect(namesOf(other.handled)).toEqual(names);
  });

  test('ends with what the server refuses for good', async () => {
    const { create: _, ...of } = await ownTenant();
    const group = uniqueName('g');
    const member = await join({ ...of, group });
    await member.until(() => member.joins.length === 1);
    const other = await join({ ...of, group, labelSelector: 'team=shop' });
    expect(await other.ended).toBeInstanceOf(Conflict);
    expect(await (await join({ group, tenants: ['strangers'] })).ended).toBeInstanceOf(NotFound);
    expect(await (await join({ group, token: 'bad' })).ended).toBeInstanceOf(Unauthorized);
  });
}

async function createWidgets(world: World, path: string, count: number, prefix: string = 'w'): Promise<string[]> {
  const names = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  await Promise.all(names.map((name) => world.admin.post(path, { metadata: { name } })));
  return names;
}
