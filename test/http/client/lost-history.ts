import { expect, test } from 'vitest';
import { CursorKeyRetired, Expired, StreamRecreated } from 'plumbline/client';
import { isOf, storyOf, useTaking } from '#test/http/client/world.ts';
import { createWidget, removeTenant, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE, type OtherTenant } from '#test/http/watch/world.ts';
import type { OwnServer } from '#test/support/own-server.ts';

export function lostHistory(open: () => Promise<OwnServer>): void {
  const world = useWorld(open);
  const taking = useTaking(world);

  /** A tenant with three events, and the cursors behind each. */
  async function threeEvents(): Promise<{ tenant: OtherTenant; cursors: string[] }> {
    const tenant = await createTenant(world);
    for (const name of ['one', 'two', 'three']) await world.admin.post(tenant.widgets, { metadata: { name } });
    const taken = await taking({ tenants: [tenant.name], grant: EVERYONE, from: 'earliest' });
    await taken.until((item) => item.type === 'ADDED' && item.object.metadata.name === 'three');
    await taken.stop();
    return { tenant, cursors: taken.changes.map(({ cursor }) => cursor ?? '') };
  }

  test('a watch whose next event was removed ends with Expired, which says from where one can go on', async () => {
    const { tenant, cursors } = await threeEvents();
    await (await open()).removeHistory(tenant.name, 2);
    const of = { tenants: [tenant.name], grant: EVERYONE };
    const taken = await taking({ ...of, from: cursors[0] });
    const error = await taken.ended;
    expect(error).toBeInstanceOf(Expired);
    expect((error as Expired).message).toMatch(/list and watch from the cursor of that list/);
    const goingOn = await taking({ ...of, from: (error as Expired).earliestCursor });
    await goingOn.until((item) => item.type === 'ADDED');
    expect(storyOf(goingOn)).toEqual(['ADDED three']);
    expect(taken.retries).toEqual([]);
  });

  test('a watch over a server that is killed and started again loses and repeats nothing', async () => {
    const server = await open();
    const taken = await taking({ tenants: [world.tenant], from: 'earliest' });
    const before = await createWidget(world);
    await taken.until(isOf(before));
    await server.restart(
      () => server.sql`insert into plumbline.resource (tenant, api_group, kind, name)
        values (${world.tenant}, 'example.dev', 'Widget', 'meanwhile')`,
    );
    const after = await createWidget(world);
    await taken.until(isOf(after));
    const names = [before.metadata.name, 'meanwhile', after.metadata.name];
    expect(storyOf(taken)).toEqual(names.map((name) => `ADDED ${name}`));
  });

  test('a watch over a tenant that was made again ends with StreamRecreated', async () => {
    const { tenant, cursors } = await threeEvents();
    for (const name of ['one', 'two', 'three']) await world.admin.delete(`${tenant.widgets}/${name}`);
    await removeTenant(world, tenant.name);
    await createTenant(world, tenant.name);
    const taken = await taking({ tenants: [tenant.name], grant: EVERYONE, from: cursors[2] });
    expect(await taken.ended).toBeInstanceOf(StreamRecreated);
  });

  test('a watch whose key was retired ends with CursorKeyRetired at its next connection, and not before', async () => {
    const taken = await taking({ tenants: [world.tenant], from: 'earliest' });
    await taken.until(isOf(await createWidget(world)));
    await (await open()).retireCursorKeys();
    expect(await taken.ended).toBeInstanceOf(CursorKeyRetired);
    const anew = await taking({ tenants: [world.tenant], from: 'earliest' });
    await anew.until(isOf(await createWidget(world, { name: uniqueName('w') })));
  });
}
