import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { RETIRE_AFTER_MS } from '#core/ports/cursor-keys.ts';
import { postgresCursorKeyAdmin } from '#adapters/postgres/cursor-keys.ts';
import { namesOf, useMembers } from '#test/http/client/members.ts';
import { uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE } from '#test/http/watch/world.ts';
import type { OwnServer } from '#test/support/own-server.ts';

export function resyncing(open: () => Promise<OwnServer>): void {
  const world = useWorld(open);
  const join = useMembers(world);

  test('whose changes were removed before it came looks at all objects of the tenant, and goes on', async () => {
    const { name, widgets } = await createTenant(world);
    const of = { group: uniqueName('g'), tenants: [name], grant: EVERYONE };
    // Several lanes begin at their first event.
    const names = Array.from({ length: 20 }, (_, index) => `w${index}`);
    for (const each of names) await world.admin.post(widgets, { metadata: { name: each } });
    const first = await join(of);
    await first.until(() => first.handled.length === names.length);
    await first.leave();
    for (const each of names) await world.admin.patch(`${widgets}/${each}`, { spec: { size: 1 } });
    await world.admin.get(widgets);
    await (await open()).removeHistory(name, 2 * names.length);
    await world.admin.post(widgets, { metadata: { name: 'after' } });

    let resyncs = 0;
    let running = 0;
    const second = await join({
      ...of,
      async onResync(tenant) {
        expect([tenant, (running += 1)]).toEqual([name, 1]);
        resyncs += 1;
        await world.admin.get(widgets);
        running -= 1;
      },
    });
    await second.until(() => resyncs > 0 && namesOf(second.handled).includes('after'));
    await second.leave();
    expect(second.failures).toEqual([]);
    expect(namesOf(second.handled)).toEqual(['after']);

    const third = await join({ ...of, onResync: () => void (resyncs = -1) });
    await world.admin.post(widgets, { metadata: { name: 'last' } });
    await third.until(() => namesOf(third.handled).includes('last'));
    expect([resyncs > 0, namesOf(third.handled)]).toEqual([true, ['last']]);
  });

  test('ends with what looking at all objects of a tenant throws, and leaves it to others', async () => {
    const { name, widgets } = await createTenant(world);
    const of = { group: uniqueName('g'), tenants: [name], grant: EVERYONE };
    await world.admin.post(widgets, { metadata: { name: 'w' } });
    const first = await join(of);
    await first.until(() => first.handled.length === 1);
    await first.leave();
    await world.admin.patch(`${widgets}/w`, { spec: { size: 1 } });
    await world.admin.get(widgets);
    await (await open()).removeHistory(name, 2);
    await world.admin.post(widgets, { metadata: { name: 'after' } });

    const broken = new Error('the objects cannot be read');
    const second = await join({
      ...of,
      onResync() {
        throw broken;
      },
    });
    expect(await second.ended).toBe(broken);
    let resyncs = 0;
    const third = await join({ ...of, onResync: () => void (resyncs += 1) });
    await third.until(() => resyncs > 0);
  });

  test('whose keys are taken away while it works is told to begin anew, and confirms what it does then', async () => {
    const { name, widgets } = await createTenant(world);
    const begun = Promise.withResolvers<void>();
    const isOver = Promise.withResolvers<void>();
    const member = await join({
      group: uniqueName('g'),
      tenants: [name],
      grant: EVERYONE,
      ackWaitMs: 600_000,
      async handler({ attempt }, { signal }) {
        if (attempt > 1) return;
        signal.addEventListener('abort', () => isOver.resolve());
        begun.resolve();
        await isOver.promise;
      },
    });
    await world.admin.post(widgets, { metadata: { name: 'w' } });
    await begun.promise;
    const keys = postgresCursorKeyAdmin((await open()).sql, randomBytes);
    const old = (await keys.list()).map(({ id }) => id);
    await keys.rotate(-RETIRE_AFTER_MS - 1);
    for (const id of old) expect(await keys.retire(id)).toBe('retired');
    await member.until(() => member.handled.length === 2);
    await world.admin.post(widgets, { metadata: { name: 'next' } });
    await member.until(() => member.handled.length === 3);
    await member.leave();
    expect(member.handled.map(({ object, attempt }) => `${object.metadata.name} ${attempt}`)).toEqual([
      'w 1',
      'w 2',
      'next 1',
    ]);
    expect(member.retries).toEqual([]);
  });

  test('goes on at a server that was killed, and handles what was not confirmed again', async () => {
    const { name, widgets } = await createTenant(world);
    const member = await join({ group: uniqueName('g'), tenants: [name], grant: EVERYONE });
    await world.admin.post(widgets, { metadata: { name: 'before' } });
    await member.until(() => member.handled.length > 0);
    const server = await open();
    await server.restart(
      () => server.sql`insert into plumbline.resource (tenant, api_group, kind, name)
        values (${name}, 'example.dev', 'Widget', 'meanwhile')`,
    );
    await member.until(() => namesOf(member.handled).includes('meanwhile'));
    expect([...new Set(namesOf(member.handled))]).toEqual(['before', 'meanwhile']);
  });
}
