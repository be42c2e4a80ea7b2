/** What the black-box suite cannot see: the events that writes leave, and objects that raw SQL has written. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { createWidget, expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { expireEvents } from '#test/support/old-events.ts';
import { clientOf } from '#test/http/client.ts';

describe('the resource API beside raw SQL', () => {
  let starting: Promise<ApiServer> | undefined;
  const world = useWorld(() => (starting ??= startApiServer()));
  let sql: Sql;

  beforeAll(async () => {
    const server = await (starting ??= startApiServer());
    sql = connect(server.databaseUrl, { applicationName: 'test' });
  });

  afterAll(async () => {
    await sql.end();
    await (await starting)?.stop();
  });

  /** The events of an object, once all that was written is published: a list waits for that. */
  async function eventsOf(uid: string): Promise<string[]> {
    expect((await world.admin.get(world.widgets)).headers.get('Warning')).toBeNull();
    const rows = await sql<{ type: string }[]>`select type from plumbline.event_log where uid = ${uid} order by seq`;
    return rows.map((row) => row.type);
  }

  async function update(uid: string, assignments: Record<string, unknown>): Promise<void> {
    await sql`update plumbline.resource set ${sql(assignments)} where uid = ${uid}`;
  }

  test('writes that change nothing leave no event', async () => {
    const object = await createWidget(world, { labels: { a: '1' } }, { size: 1 });
    const path = world.widget(object.metadata.name);
    await world.editor.put(path, object);
    await world.editor.patch(path, { spec: { size: 1 } });
    await world.editor.put(path, { ...object, status: { ready: true } });
    await world.controller.patch(`${path}/status`, { status: {} });
    expect(await eventsOf(object.metadata.uid)).toEqual(['ADDED']);
  });

  test('dry runs leave no event', async () => {
    const object = await createWidget(world, { finalizers: ['example.dev/a'] }, { size: 1 });
    const path = `${world.widget(object.metadata.name)}?dryRun=All`;
    await world.editor.put(path, { ...object, spec: { size: 2 } });
    await world.editor.patch(path, { spec: { size: 3 } });
    await world.controller.patch(path.replace('?', '/status?'), { status: { ready: true } });
    await world.editor.delete(path);
    expect(await eventsOf(object.metadata.uid)).toEqual(['ADDED']);
    const made = await world.editor.post(`${world.widgets}?dryRun=All`, { metadata: { name: uniqueName('w') } });
    expect(await eventsOf(made.body.metadata.uid)).toEqual([]);
    const left = await sql`select from plumbline.outbox where uid = ${made.body.metadata.uid}`;
    expect(left.length).toBe(0);
  });

  test('of two writers from the same state one leaves an event', async () => {
    const object = await createWidget(world);
    const path = world.widget(object.metadata.name);
    await Promise.all([1, 2, 3].map((size) => world.editor.put(path, { ...object, spec: { size } })));
    expect(await eventsOf(object.metadata.uid)).toEqual(['ADDED', 'MODIFIED']);
  });

  test('a deletion with finalizers is one MODIFIED, its repetitions none, and its end one DELETED', async () => {
    const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] });
    const path = world.widget(metadata.name);
    const { body } = await world.editor.delete(path);
    await world.editor.delete(path);
    await world.editor.put(path, { ...body, metadata: { ...body.metadata, deletionTimestamp: null } });
    expect(await eventsOf(metadata.uid)).toEqual(['ADDED', 'MODIFIED']);
    await world.editor.patch(path, { metadata: { finalizers: [] } });
    expect(await eventsOf(metadata.uid)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
  });

  describe('an object that its schema would refuse today', () => {
    test('is read as it is, and everything but its spec can still be written', async () => {
      const { metadata } = await createWidget(world, { finalizers: ['example.dev/a'] });
      const path = world.widget(metadata.name);
      await update(metadata.uid, { spec: sql.json({ size: -7 }) });
      const { body } = await world.editor.get(path);
      expect(body.spec).toEqual({ size: -7 });
      const labelled = await world.editor.put(path, { ...body, metadata: { ...body.metadata, labels: { a: 'b' } } });
      expect(labelled.status, labelled.text).toBe(200);
      expect((await world.controller.patch(path, { metadata: { annotations: { a: 'b' } } })).status).toBe(200);
      expectStatus(await world.editor.patch(path, { spec: { size: -8 } }), 422, 'Invalid');
      await world.editor.delete(path);
      expect((await world.controller.patch(path, { metadata: { finalizers: null } })).status).toBe(200);
      expectStatus(await world.editor.get(path), 404, 'NotFound');
    });

    test('is not changed by defaults that came later, when it is being deleted and its finalizer goes', async () => {
      const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
      const created = await world.editor.post(vaults, { metadata: { name: uniqueName('v') } });
      const path = `${vaults}/${created.body.metadata.name}`;
      await update(created.body.metadata.uid, { spec: sql.json({ legacy: true }) });
      const { body } = await world.editor.delete(path);
      expect(body.spec).toEqual({ legacy: true });
      const released = await world.editor.put(path, { ...body, metadata: { ...body.metadata, finalizers: [] } });
      expect(released.status, released.text).toBe(200);
      expectStatus(await world.editor.get(path), 404, 'NotFound');
    });
  });

  test('a selector that few of many objects meet is listed in pages that may be empty, each with the way on', async () => {
    await sql`
      insert into plumbline.resource (tenant, api_group, kind, name, spec, labels)
      select ${world.tenant}, 'example.dev', 'Disk', 'd' || lpad(i::text, 6, '0'), '{"zone": "a"}',
        case when i = 10005 then '{"rare": "yes"}'::jsonb else '{}' end
      from generate_series(1, 10005) i`;
    const disks = `/apis/example.dev/v1/namespaces/${world.tenant}/disks?labelSelector=rare`;
    const reader = await clientOf(world.target, { roles: ['viewer'], tenants: [world.tenant] });
    // The publisher needs more than the second that a list waits for it.
    await expect
      .poll(async () => (await reader.get(`${disks}&limit=1`)).body.metadata.cursor, { timeout: 30_000 })
      .toEqual(expect.any(String));
    const first = (await reader.get(disks)).body;
    expect(first.items).toEqual([]);
    const rest = (await reader.get(`${disks}&continue=${first.metadata.continue}`)).body;
    expect(rest.items).toMatchObject([{ metadata: { name: 'd010005' } }]);
    expect(rest.metadata).toEqual({ cursor: first.metadata.cursor });
  });

  test('a list whose first page is older than the log is 410, with the way on from the same place, without a cursor', async () => {
    const tenant = uniqueName('t');
    await world.admin.post(TENANTS, { metadata: { name: tenant } });
    const names = ['a', 'b', 'c', 'd'];
    const widgets = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
    for (const name of names) await world.admin.post(widgets, { metadata: { name } });
    const own = await clientOf(world.target, { roles: ['viewer'], tenants: [tenant] });
    for (const [client, list] of [
      [world.admin, `${widgets}?limit=1`],
      [own, `/apis/example.dev/v1/widgets?limit=1`],
    ] as const) {
      const first = (await client.get(list)).body;
      const second = (await client.get(`${list}&continue=${first.metadata.continue}`)).body;
      expect(second.metadata.cursor).toBe(first.metadata.cursor);
      // What came after the first page goes before the third is asked for.
      await world.admin.patch(`${widgets}/a`, { metadata: { labels: { by: uniqueName('l') } } });
      expect((await own.get(widgets)).headers.get('Warning')).toBeNull();
      const [log] = await sql<{ lastSeq: string }[]>`select f.last_seq::text as "lastSeq" from plumbline.frontier f
        join plumbline.stream s on s.id = f.stream where s.tenant = ${tenant}`;
      await expireEvents(sql, tenant, Number(log?.lastSeq));
      const late = await client.get(`${list}&continue=${second.metadata.continue}`);
      expectStatus(late, 410, 'Expired', 'go on from metadata.continue');
      const third = (await client.get(`${list}&continue=${late.body.metadata.continue}`)).body;
      expect(third.items[0].metadata.name).toBe('c');
      expect(third.metadata).not.toHaveProperty('cursor');
      const fourth = (await client.get(`${list}&continue=${third.metadata.continue}`)).body;
      expect(fourth.items[0].metadata.name).toBe('d');
      expect(fourth.metadata).not.toHaveProperty('cursor');
    }
  });

  test('numbers that JavaScript cannot hold pass through reads, and through writes that do not name them', async () => {
    const { metadata } = await createWidget(world);
    const path = world.widget(metadata.name);
    await update(metadata.uid, { spec: sql`'{"big": 12345678901234567890, "size": 1}'::jsonb` });
    expect((await world.editor.get(path)).text).toContain('12345678901234567890');
    expect((await world.editor.patch(path, { metadata: { labels: { a: 'b' } } })).text).toContain(
      '12345678901234567890',
    );
    expect((await world.editor.get(world.widgets)).text).toContain('12345678901234567890');
  });

  test('keys that would reach a prototype, written by SQL, are data', async () => {
    const { metadata } = await createWidget(world);
    const path = world.widget(metadata.name);
    await update(metadata.uid, { spec: sql`'{"__proto__": {"polluted": 1}, "size": 1}'::jsonb` });
    const { text } = await world.editor.patch(path, { spec: { other: 1 } });
    expect(JSON.parse(text).spec.polluted).toBeUndefined();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('the resource API while nothing is published', () => {
  let starting: Promise<ApiServer> | undefined;
  const world = useWorld(() => (starting ??= startApiServer({ withPublisher: false })));
  afterAll(async () => (await starting)?.stop());

  test('lists are current, late by a second, without a cursor and with a warning', async () => {
    const { metadata } = await createWidget(world);
    const startedAt = performance.now();
    const answer = await world.editor.get(world.widgets);
    expect(performance.now() - startedAt).toBeLessThan(1500);
    expect(answer.headers.get('Warning')).toMatch(/^199 plumbline "the event log is behind/);
    expect(answer.body.metadata).toEqual({});
    expect(answer.body.items).toMatchObject([{ metadata: { name: metadata.name } }]);
    const paged = await world.editor.get(`${world.widgets}?limit=1`);
    expect(paged.body.metadata).toEqual({});
  });

  test('a list over more tenants than a cursor holds has none, and says so', async () => {
    const many = Array.from({ length: 300 }, () => uniqueName('t'));
    for (const name of many) await world.admin.post(TENANTS, { metadata: { name } });
    const viewer = await clientOf(world.target, { roles: ['viewer'], tenants: many });
    const answer = await viewer.get('/apis/example.dev/v1/widgets');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('Warning')).toContain('no cursor: a cursor over 301 tenants is too large');
    expect(answer.body.metadata).toEqual({});
    const names = (await viewer.get(`${TENANTS}?limit=1000`)).body.items.map(
      (item: { metadata: { name: string } }) => item.metadata.name,
    );
    expect(names).toEqual([...many, 'shared'].toSorted());
  });
});
