/** Kubernetes Events, as callers see what controllers told. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { clientOf, type Client } from '#test/http/client.ts';
import { createWidget, expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';

let starting: Promise<ApiServer> | undefined;
const world = useWorld(() => (starting ??= startApiServer()));
let sql: Sql;
let widget: { readonly metadata: { readonly name: string; readonly uid: string } };

beforeAll(async () => {
  const server = await (starting ??= startApiServer());
  sql = connect(server.databaseUrl, { applicationName: 'test' });
});

afterAll(async () => {
  await sql.end();
  await (await starting)?.stop();
});

beforeEach(async () => {
  widget = await createWidget(world);
});

interface Told {
  readonly type?: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message?: string;
  readonly count?: number;
  readonly firstAt?: string;
  readonly lastAt?: string;
}

/** A controller tells something of an object that is there. Gives the event's id. */
async function tell(uid: string, told: Told): Promise<string> {
  const { type = 'Normal', reason, message = 'said so', count = 1, lastAt = '2026-11-29T10:00:00Z' } = told;
  const [row] = await sql<{ id: string }[]>`
    insert into plumbline.object_event (stream, tenant, api_group, version, kind, name, uid, controller, type, reason,
      message, count, first_at, last_at)
    select s.id, r.tenant, r.api_group, r.version, r.kind, r.name, r.uid, 'example.dev/smith', ${type}, ${reason},
      ${message}, ${count}, ${told.firstAt ?? lastAt}::text::timestamptz, ${lastAt}::text::timestamptz
    from plumbline.resource r join plumbline.stream s on s.tenant = r.tenant and s.closed_at is null
    where r.uid = ${uid}::text::uuid returning id::text as id`;
  if (!row) throw new Error(`there is no object ${uid}`);
  return row.id;
}

function eventsOf(tenant: string, query: Record<string, string> = {}): string {
  return `/api/v1/namespaces/${tenant}/events?${new URLSearchParams(query).toString()}`;
}

async function reasons(client: Client, path: string): Promise<string[]> {
  const { status, body, text } = await client.get(path);
  expect(status, text).toBe(200);
  return body.items.map((item: { reason: string }) => item.reason);
}

const about = (uid: string): { fieldSelector: string } => ({ fieldSelector: `involvedObject.uid=${uid}` });

test('an event is a core/v1 Event, with the object that it is about', async () => {
  const id = await tell(widget.metadata.uid, {
    type: 'Warning',
    reason: 'Stuck',
    message: 'the forge is cold',
    count: 3,
    firstAt: '2026-11-29T10:00:00.5Z',
    lastAt: '2026-11-29T10:05:00.25Z',
  });
  const { name, uid } = widget.metadata;
  const { body } = await world.viewer.get(eventsOf(world.tenant, about(uid)));
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${id}`, namespace: world.tenant, uid: id, creationTimestamp: '2026-11-29T10:00:00Z' },
    involvedObject: { apiVersion: 'example.dev/v1', kind: 'Widget', namespace: world.tenant, name, uid },
    reason: 'Stuck',
    message: 'the forge is cold',
    type: 'Warning',
    count: 3,
    firstTimestamp: '2026-11-29T10:00:00Z',
    lastTimestamp: '2026-11-29T10:05:00Z',
    eventTime: null,
    source: { component: 'example.dev/smith' },
    reportingComponent: 'example.dev/smith',
    reportingInstance: '',
  };
  expect(body).toEqual({ apiVersion: 'v1', kind: 'EventList', metadata: {}, items: [event] });
  expect((await world.viewer.get(`/api/v1/namespaces/${world.tenant}/events/${name}.${id}`)).body).toEqual(event);
  for (const wrong of [id, `other.${id}`, `${name}.${crypto.randomUUID()}`, name, "'", 'x'.repeat(300)]) {
    const path = `/api/v1/namespaces/${world.tenant}/events/${encodeURIComponent(wrong)}`;
    expectStatus(await world.viewer.get(path), 404, 'NotFound', 'not found');
  }
});

test('events come in the order of their last time, and then of their names, page by page', async () => {
  const { uid } = widget.metadata;
  const other = await createWidget(world, { name: `a-${widget.metadata.name}` });
  const later = await createWidget(world, { name: `z-${widget.metadata.name}` });
  await tell(uid, { reason: 'Third', lastAt: '2026-11-29T12:00:00.000002Z' });
  await tell(uid, { reason: 'Second', lastAt: '2026-11-29T12:00:00.000001Z' });
  await tell(later.metadata.uid, { reason: 'Fifth', lastAt: '2026-11-29T12:00:01Z' });
  await tell(other.metadata.uid, { reason: 'Fourth', lastAt: '2026-11-29T12:00:01Z' });
  await tell(uid, { reason: 'First', firstAt: '2026-11-29T09:00:00Z', lastAt: '2026-11-29T11:00:00Z' });
  const path = eventsOf(world.tenant, { fieldSelector: 'type!=Warning' });
  const all = (await reasons(world.viewer, path)).filter((reason) =>
    /^(First|Second|Third|Fourth|Fifth)$/.test(reason),
  );
  expect(all).toEqual(['First', 'Second', 'Third', 'Fourth', 'Fifth']);
  const everything = await reasons(world.viewer, path);
  const paged: string[] = [];
  let next = '';
  do {
    const page = `${path}&limit=2&continue=${encodeURIComponent(next)}`;
    paged.push(...(await reasons(world.viewer, page)));
    next = (await world.viewer.get(page)).body.metadata.continue ?? '';
  } while (next !== '');
  expect(paged).toEqual(everything);
  const foreign = await world.viewer.get(`${path}&limit=1`);
  const elsewhere = `/api/v1/events?fieldSelector=type!%3DWarning&continue=${foreign.body.metadata.continue}`;
  expectStatus(await world.viewer.get(elsewhere), 400, 'BadRequest', 'continue is malformed');
});

describe('a field selector', () => {
  test('selects by what Kubernetes clients ask for', async () => {
    const { name, uid } = widget.metadata;
    const id = await tell(uid, { reason: 'Made' });
    await tell(uid, { reason: 'Bent', type: 'Warning', message: 'a little' });
    const object = `involvedObject.name=${name},involvedObject.namespace=${world.tenant},involvedObject.kind=Widget`;
    for (const [fieldSelector, expected] of [
      [`${object},involvedObject.uid=${uid}`, ['Bent', 'Made']],
      [`${object},involvedObject.apiVersion=example.dev/v1`, ['Bent', 'Made']],
      [`${object},type=Warning`, ['Bent']],
      [`${object},type!=Warning`, ['Made']],
      [`${object},reason==Made`, ['Made']],
      [`${object},source=example.dev/smith,reportingComponent=example.dev/smith`, ['Bent', 'Made']],
      [`metadata.name=${name}.${id}`, ['Made']],
      [`metadata.name!=${name}.${id},involvedObject.uid=${uid}`, ['Bent']],
      [`metadata.namespace=${world.tenant},involvedObject.uid=${uid}`, ['Bent', 'Made']],
      [`involvedObject.namespace=,involvedObject.uid=${uid}`, []],
      [`involvedObject.uid=no-uuid`, []],
      [`involvedObject.uid!=no-uuid,involvedObject.name=${name}`, ['Bent', 'Made']],
      [`metadata.name=${id}`, []],
    ] as const) {
      for (const path of [eventsOf(world.tenant), '/api/v1/events?']) {
        const found = await reasons(world.viewer, `${path}fieldSelector=${encodeURIComponent(fieldSelector)}`);
        expect(found.toSorted(), fieldSelector).toEqual(expected);
      }
    }
  });

  test.each([
    ['spec.size=1', 'field label not supported: spec.size'],
    ['reason', 'not of the form field=value'],
  ])('that is not known is refused: %s', async (fieldSelector, words) => {
    expectStatus(await world.viewer.get(eventsOf(world.tenant, { fieldSelector })), 400, 'BadRequest', words);
  });
});

test('what Kubernetes clients add is accepted, and a watch is refused in words', async () => {
  const { uid } = widget.metadata;
  await tell(uid, { reason: 'Made' });
  const added = { limit: '500', resourceVersion: '0', timeoutSeconds: '30', includeObject: 'Object', watch: 'false' };
  expect(await reasons(world.viewer, eventsOf(world.tenant, { ...added, ...about(uid) }))).toEqual(['Made']);
  expect(await reasons(world.viewer, eventsOf(world.tenant, { ...about(uid), labelSelector: '!any' }))).toEqual([
    'Made',
  ]);
  expect(await reasons(world.viewer, eventsOf(world.tenant, { ...about(uid), labelSelector: 'any=label' }))).toEqual(
    [],
  );
  expectStatus(await world.viewer.get(eventsOf(world.tenant, { watch: '1' })), 400, 'BadRequest', 'cannot be watched');
  expectStatus(await world.viewer.get(eventsOf(world.tenant, { limit: '-1' })), 400, 'BadRequest', 'limit');
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('events are read only: %s is 405', async (method) => {
  for (const path of ['/api/v1/events', eventsOf(world.tenant), `/api/v1/namespaces/${world.tenant}/events/x`]) {
    const body = method === 'DELETE' ? undefined : {};
    expectStatus(await world.admin.send(method, path, body), 405, 'MethodNotAllowed', 'GET');
  }
});

describe('who sees what', () => {
  let stranger: Client;
  let all: Client;

  beforeAll(async () => {
    const elsewhere = uniqueName('t');
    await world.admin.post(TENANTS, { metadata: { name: elsewhere } });
    stranger = await clientOf(world.target, { roles: ['admin'], tenants: [elsewhere] });
    all = await clientOf(world.target, { roles: ['viewer'], tenants: '*' });
  });

  test('events of one tenant are not there for another: not listed, not by name', async () => {
    const { name, uid } = widget.metadata;
    const id = await tell(uid, { reason: 'Made' });
    const path = `/api/v1/events?fieldSelector=involvedObject.uid%3D${uid}`;
    expect(await reasons(world.viewer, path)).toEqual(['Made']);
    expect(await reasons(all, path)).toEqual(['Made']);
    expect(await reasons(stranger, path)).toEqual([]);
    expectStatus(await stranger.get(`/api/v1/namespaces/${world.tenant}/events/${name}.${id}`), 404, 'NotFound');
    const missing = uniqueName('t');
    const [there, nowhere] = await Promise.all(
      [world.tenant, missing].map(async (tenant) =>
        (await stranger.get(eventsOf(tenant))).text.replaceAll(tenant, 'T'),
      ),
    );
    expect(there).toBe(nowhere);
    expectStatus(await all.get(eventsOf(missing)), 404, 'NotFound', 'tenant');
    expectStatus(await all.get(eventsOf('system')), 404, 'NotFound', 'tenant');
    const powerless = await clientOf(world.target, { roles: [], tenants: '*' });
    expectStatus(await powerless.get('/api/v1/events'), 403, 'Forbidden');
  });

  test('events in the shared tenant are for everybody', async () => {
    const { body } = await world.admin.post('/apis/example.dev/v1/namespaces/shared/widgets', {
      metadata: { name: uniqueName('w') },
    });
    await tell(body.metadata.uid, { reason: 'Shared' });
    for (const path of ['/api/v1/events?', eventsOf('shared')]) {
      expect(await reasons(stranger, `${path}fieldSelector=involvedObject.uid%3D${body.metadata.uid}`)).toEqual([
        'Shared',
      ]);
    }
  });

  test('events of a Tenant are for those who may read it, and in its own namespace', async () => {
    const { uid } = (await world.admin.get(`${TENANTS}/${world.tenant}`)).body.metadata;
    await tell(uid, { reason: 'Opened' });
    const selector = encodeURIComponent(
      `involvedObject.name=${world.tenant},involvedObject.namespace=,involvedObject.kind=Tenant,involvedObject.uid=${uid}`,
    );
    for (const client of [world.viewer, all]) {
      for (const path of ['/api/v1/events?', eventsOf(world.tenant)]) {
        expect(await reasons(client, `${path}fieldSelector=${selector}`)).toEqual(['Opened']);
      }
    }
    const { items } = (await world.viewer.get(eventsOf(world.tenant, about(uid)))).body;
    expect(items[0].metadata.namespace).toBe(world.tenant);
    expect(items[0].involvedObject).toEqual({
      apiVersion: 'plumbline.dev/v1',
      kind: 'Tenant',
      name: world.tenant,
      uid,
    });
    expect(await reasons(stranger, `/api/v1/events?fieldSelector=${selector}`)).toEqual([]);
  });

  test('events of other cluster-scoped objects are for callers of all tenants', async () => {
    const planet = await world.admin.post('/apis/example.dev/v1/planets', { metadata: { name: uniqueName('p') } });
    const { uid } = planet.body.metadata;
    await tell(uid, { reason: 'Formed' });
    const path = `/api/v1/events?fieldSelector=involvedObject.uid%3D${uid}`;
    expect(await reasons(all, path)).toEqual(['Formed']);
    expect(await reasons(world.viewer, path)).toEqual([]);
  });

  test('a tenant that was made anew sees nothing of the one before it, nor does anyone else', async () => {
    const name = uniqueName('t');
    const widgets = `/apis/example.dev/v1/namespaces/${name}/widgets`;
    const [first, second] = [await live(), await live()];
    for (const client of [await clientOf(world.target, { roles: ['viewer'], tenants: [name] }), all]) {
      expect(await reasons(client, eventsOf(name))).toEqual([]);
      expect(await reasons(client, `/api/v1/events?fieldSelector=involvedObject.uid%3D${first.widget}`)).toEqual([]);
    }
    const member = await clientOf(world.target, { roles: ['viewer'], tenants: [name] });
    expect(await reasons(member, `/api/v1/events?fieldSelector=involvedObject.uid%3D${second.tenant}`)).toEqual([]);
    // Who sees all of the installation sees what was told of its past.
    expect(await reasons(all, `/api/v1/events?fieldSelector=involvedObject.uid%3D${first.tenant}`)).toEqual([
      'OldTenant',
    ]);

    /** One life of the tenant, with events of it and of an object in it; then it is gone, and born again. */
    async function live(): Promise<{ tenant: string; widget: string }> {
      const made = await world.admin.get(`${TENANTS}/${name}`);
      const tenant = made.status === 404 ? (await world.admin.post(TENANTS, { metadata: { name } })).body : made.body;
      const { body: inside } = await world.admin.post(widgets, { metadata: { name: 'w' } });
      await tell(tenant.metadata.uid, { reason: 'OldTenant' });
      await tell(inside.metadata.uid, { reason: 'OldWidget' });
      const member = await clientOf(world.target, { roles: ['viewer'], tenants: [name] });
      expect((await reasons(member, eventsOf(name))).toSorted()).toEqual(['OldTenant', 'OldWidget']);
      await world.admin.delete(`${widgets}/w`);
      expect((await world.admin.delete(`${TENANTS}/${name}`)).status).toBe(200);
      expect((await world.admin.post(TENANTS, { metadata: { name } })).status).toBe(201);
      return { tenant: tenant.metadata.uid, widget: inside.metadata.uid };
    }
  });
});
