/** The status of a kind whose controllers run here: what others may still write of it, over HTTP. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { connect, type Sql } from '#adapters/postgres/client.ts';
import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { createWidget, expectStatus, uniqueName, useWorld } from '#test/http/resource-api/world.ts';

const READY = { type: 'Ready', status: 'True', reason: 'Done' };
const PAUSED = { type: 'Paused', status: 'True', reason: 'Asked' };
const FOREIGN = { type: 'Backup', status: 'True', reason: 'Kept' };
const REPORTED = {
  observedGeneration: 1,
  endpoint: 'a:1',
  conditions: [READY],
  resources: [{ class: 'box', id: '1' }],
};

let starting: Promise<ApiServer> | undefined;
const world = useWorld(() => (starting ??= startApiServer()));
let sql: Sql;
// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
let object: any;
let path: string;

beforeAll(async () => {
  const server = await (starting ??= startApiServer());
  sql = connect(server.databaseUrl, { applicationName: 'test', maxConnections: 1 });
  await sql`insert into plumbline.controller (name, api_group, kind, condition_types, status_fields, resync)
    values ('example.dev/smith', 'example.dev', 'Widget', '{Ready}', '{endpoint}', '10 minutes')`;
});

afterAll(async () => {
  await sql.end();
  await (await starting)?.stop();
});

beforeEach(async () => {
  const { metadata } = await createWidget(world, { name: uniqueName('w') });
  await world.editor.patch(world.widget(metadata.name), { spec: { size: 2 } });
  await report(metadata.uid, REPORTED);
  path = world.widget(metadata.name);
  object = (await world.viewer.get(path)).body;
  expect(object.status).toEqual(REPORTED);
});

/** As the driver does, in a function that has checked whose pass it is. */
async function report(uid: string, status: unknown): Promise<void> {
  await sql`begin`;
  await sql`select set_config('plumbline.writer', 'example.dev/smith', true)`;
  await sql`update plumbline.resource set status = ${JSON.stringify(status)}::text::jsonb where uid = ${uid}::text::uuid`;
  await sql`commit`;
}

/** Conditions are stored by type. */
function sorted(...conditions: readonly (typeof READY)[]): unknown[] {
  return conditions.toSorted((a, b) => (a.type < b.type ? -1 : 1));
}

/** With the time of its transition, which is the store's. */
function stamped(condition: typeof READY): typeof READY {
  return { ...condition, lastTransitionTime: expect.any(String) } as typeof READY;
}

describe('a status write', () => {
  test.each([
    [
      'changes a condition',
      { conditions: [{ ...READY, status: 'False' }] },
      'Ready belongs to controller example.dev/smith',
    ],
    ['takes one away', { conditions: [] }, 'Ready belongs to controller example.dev/smith'],
    ['adds one of the driver', { conditions: [READY, PAUSED] }, 'Paused belongs to the driver'],
    ['changes a field', { endpoint: 'b:2' }, 'status.endpoint belongs to controller example.dev/smith'],
    ['takes one away', { endpoint: null }, 'status.endpoint belongs to'],
    ['lists other resources', { resources: [] }, 'status.resources belongs to the driver'],
    ['forgets what was asked for', { lastReconcileNow: 'x' }, 'status.lastReconcileNow belongs to the driver'],
    ['claims to have observed', { observedGeneration: 2 }, 'status.observedGeneration belongs to the driver'],
  ])('that %s is refused, and says whose it is: %j', async (_what, status, words) => {
    const patched = await world.controller.patch(`${path}/status`, { status });
    expectStatus(patched, 403, 'Forbidden', words);
    const whole = Object.fromEntries(Object.entries({ ...REPORTED, ...status }).filter(([, value]) => value !== null));
    expectStatus(await world.admin.put(`${path}/status`, { ...object, status: whole }), 403, 'Forbidden', words);
    expect((await world.viewer.get(path)).body).toEqual(object);
  });

  test('of everything at once is refused too', async () => {
    const status = { observedGeneration: 1 };
    expectStatus(await world.controller.put(`${path}/status`, { ...object, status }), 403, 'Forbidden');
  });

  test('beside what belongs to others is free: fields and conditions of somebody else, in any order', async () => {
    const status = { ...REPORTED, conditions: [FOREIGN, READY], backups: 3 };
    const { body } = await world.controller.put(`${path}/status`, { ...object, status });
    expect(body.status).toEqual({ ...status, conditions: sorted(stamped(FOREIGN), READY) });
    const changed = await world.controller.patch(`${path}/status`, {
      status: { conditions: [READY, { ...FOREIGN, status: 'False' }], backups: null },
    });
    expect(changed.body.status).toEqual({
      ...REPORTED,
      conditions: sorted(READY, stamped({ ...FOREIGN, status: 'False' })),
    });
  });

  test('cannot claim to be the driver: a setting of one request is not there in the next', async () => {
    await report(object.metadata.uid, { ...REPORTED, endpoint: 'c:3' });
    expectStatus(await world.controller.patch(`${path}/status`, { status: { endpoint: 'b:2' } }), 403, 'Forbidden');
  });
});

test('a deletion that no running controller ends is told of by the driver, in a condition of its own', async () => {
  await world.editor.patch(path, { metadata: { finalizers: ['example.dev/gone'] } });
  expect((await world.editor.delete(path)).status).toBe(202);
  await sql`select plumbline.report_blocked_deletions('0 seconds', null, 100)`;
  const { conditions, ...rest } = (await world.viewer.get(path)).body.status;
  expect(conditions).toMatchObject([{ type: 'DeletionBlocked', status: 'True', reason: 'NoController' }, READY]);
  expect(rest).toEqual({ ...REPORTED, conditions: undefined });
});

test('the finalizer of a controller that runs is left to its passes; of one that does not run it can be taken off', async () => {
  const finalizers = ['example.dev/smith', 'example.dev/other'];
  await world.editor.patch(path, { metadata: { finalizers } });
  const deleted = await world.editor.delete(path);
  expect(deleted.status).toBe(202);
  const { resourceVersion } = deleted.body.metadata;
  await sql`update plumbline.controller set finalizer = 'example.dev/smith', last_seen_at = clock_timestamp()`;
  for (const left of [[], ['example.dev/other']]) {
    const refused = await world.editor.patch(path, { metadata: { resourceVersion, finalizers: left } });
    expectStatus(refused, 403, 'Forbidden', 'example.dev/smith');
  }
  expect((await world.editor.patch(path, { metadata: { finalizers: ['example.dev/smith'] } })).status).toBe(200);
  await sql`update plumbline.controller set last_seen_at = clock_timestamp() - interval '1 hour'`;
  expect((await world.editor.patch(path, { metadata: { finalizers: [] } })).status).toBe(200);
  expect((await world.viewer.get(path)).status).toBe(404);
});

test('everything else of the object is written as before', async () => {
  const labelled = await world.editor.patch(path, { metadata: { labels: { a: 'b' } }, spec: { size: 3 } });
  expect(labelled.status).toBe(200);
  expect(labelled.body.status).toEqual(REPORTED);
});

test('the status of a kind without controllers here is free, as before', async () => {
  const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
  const { body } = await world.editor.post(vaults, { metadata: { name: uniqueName('v') } });
  const status = { ...REPORTED, conditions: [READY, PAUSED], lastReconcileNow: 'x' };
  const at = `${vaults}/${body.metadata.name}/status`;
  expect((await world.controller.patch(at, { status })).body.status).toEqual({
    ...status,
    conditions: sorted(stamped(READY), stamped(PAUSED)),
  });
  const changed = { observedGeneration: 1, conditions: [], endpoint: 'b:2' };
  const { metadata } = (await world.viewer.get(at)).body;
  expect((await world.controller.put(at, { metadata, status: changed })).body.status).toEqual(changed);
});

test('raw SQL is held to it as well', async () => {
  for (const status of [
    {},
    { ...REPORTED, conditions: { ...READY, status: 'False' } },
    { ...REPORTED, conditions: [READY, READY] },
  ]) {
    const write = sql`update plumbline.resource set status = ${JSON.stringify(status)}::text::jsonb
      where uid = ${object.metadata.uid}::text::uuid`;
    await expect(write).rejects.toMatchObject({ code: 'PL403', column_name: 'status' });
  }
});
