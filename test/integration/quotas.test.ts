import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

const WIDGETS = '/apis/example.dev/v1/namespaces/acme/widgets';

let database: TestDatabase;
let instance: LocalInstance;
let sql: Sql;
let acme: string;
let globex: string;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect(database.url, { applicationName: 'test', maxConnections: 2 });
  // Before the start, which reads what Tenant objects say.
  const first = await startLocalInstance({ databaseUrl: database.url });
  for (const [name, quota] of [
    ['acme', { objects: 2, watchers: 2 }],
    ['globex', { requestsPerSecond: 2 }],
  ] as const) {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
      values ('system', 'plumbline.dev', 'Tenant', ${name}, ${JSON.stringify({ quota })}::text::jsonb)`;
  }
  await first.stop();
  instance = await startLocalInstance({ databaseUrl: database.url, env: { TENANT_OBJECTS: '7' } });
  acme = await instance.token({ roles: ['editor'], tenants: ['acme'] });
  globex = await instance.token({ roles: ['editor'], tenants: ['globex'] });
});

afterAll(async () => {
  await instance.stop();
  await sql.end();
  await database.drop();
});

describe('a tenant at its limit of a kind', () => {
  beforeAll(async () => {
    for (const name of ['one', 'two']) expect((await create(name)).status).toBe(201);
  });

  test('gets 403 for one more, which says the limit, what is used, and what to do', async () => {
    const answer = await create('three');
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({
      reason: 'Forbidden',
      message:
        'Widget "three": exceeded quota: objects, requested: count/widgets.example.dev=1, used: count/widgets.example.dev=2, ' +
        'limited: count/widgets.example.dev=2. Delete what tenant "acme" does not need, or raise spec.quota.objects of its Tenant object.',
      details: { name: 'three', kind: 'widgets' },
    });
    expect((await create('three', '?dryRun=All')).status).toBe(403);
  });

  test('sees what it has and may have', async () => {
    const list = await call(acme, 'GET', '/api/v1/namespaces/acme/resourcequotas');
    expect(await list.json()).toMatchObject({
      kind: 'ResourceQuotaList',
      items: [
        {
          metadata: { name: 'objects', namespace: 'acme', creationTimestamp: expect.stringMatching(/Z$/) },
          status: { hard: { 'count/widgets.example.dev': '2' }, used: { 'count/widgets.example.dev': '2' } },
        },
      ],
    });
    const one = await call(globex, 'GET', '/api/v1/namespaces/globex/resourcequotas/objects');
    expect(await one.json()).toMatchObject({
      status: { hard: { 'count/widgets.example.dev': '7' }, used: { 'count/widgets.example.dev': '0' } },
    });
  });

  test('does not see what others have: as for a tenant that does not exist', async () => {
    const foreign = await call(acme, 'GET', '/api/v1/namespaces/globex/resourcequotas');
    const missing = await call(acme, 'GET', '/api/v1/namespaces/nobody/resourcequotas');
    expect([foreign.status, missing.status]).toEqual([404, 404]);
  });

  test('changes and deletes what it has, and takes finalizers off', async () => {
    const patch = (body: object): Promise<Response> =>
      call(acme, 'PATCH', `${WIDGETS}/one`, body, 'application/merge-patch+json');
    expect((await patch({ metadata: { finalizers: ['example.dev/hold'] } })).status).toBe(200);
    expect((await call(acme, 'DELETE', `${WIDGETS}/one`)).status).toBe(202);
    const version = ((await (await call(acme, 'GET', `${WIDGETS}/one`)).json()) as Marked).metadata.resourceVersion;
    expect((await patch({ metadata: { finalizers: null, resourceVersion: version } })).status).toBe(200);
    expect((await call(acme, 'GET', `${WIDGETS}/one`)).status).toBe(404);
    expect((await create('four')).status).toBe(201);
    expect((await create('five')).status).toBe(403);
  });
});

interface Marked {
  readonly metadata: { readonly resourceVersion: string };
}

test('a tenant over its rate gets 429 with Retry-After, and no other tenant does', async () => {
  const path = '/apis/example.dev/v1/namespaces/globex/widgets';
  const answers = await Promise.all(Array.from({ length: 12 }, () => call(globex, 'GET', path)));
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(0);
  expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(await refused[0]?.json()).toMatchObject({
    reason: 'TooManyRequests',
    message: expect.stringContaining('tenant "globex" makes more than 2 requests per second') as string,
  });
  const others = await Promise.all(Array.from({ length: 12 }, () => call(acme, 'GET', WIDGETS)));
  expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
  // Nor does a stranger use up what is theirs.
  const asked = await Promise.all(
    Array.from({ length: 12 }, () => call(acme, 'GET', '/apis/example.dev/v1/namespaces/globex/widgets')),
  );
  expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 404));
});

test('a tenant over its rate still deletes, and takes finalizers off', async () => {
  const path = '/apis/example.dev/v1/namespaces/globex/widgets';
  const names = ['merge', 'json'];
  // By SQL: a creation by HTTP would wait for the rate.
  for (const name of names) {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name, finalizers)
      values ('globex', 'example.dev', 'Widget', ${name}, '{example.dev/hold}')`;
  }
  const flood = (): Promise<Response>[] => Array.from({ length: 12 }, () => call(globex, 'GET', path));
  const deletions = await Promise.all([...flood(), ...names.map((name) => call(globex, 'DELETE', `${path}/${name}`))]);
  expect(deletions.slice(0, 12).some(({ status }) => status === 429)).toBe(true);
  expect(deletions.slice(12).map(({ status }) => status)).toEqual([202, 202]);
  const removals = await Promise.all([
    ...flood(),
    call(globex, 'PATCH', `${path}/merge`, { metadata: { finalizers: null } }, 'application/merge-patch+json'),
    call(
      globex,
      'PATCH',
      `${path}/json`,
      [{ op: 'remove', path: '/metadata/finalizers/0' }],
      'application/json-patch+json',
    ),
  ]);
  expect(removals.slice(12).map(({ status }) => status)).toEqual([200, 200]);
  const left = await sql`select from plumbline.resource where tenant = 'globex' and kind = 'Widget'`;
  expect(left.length).toBe(0);
});

test('a tenant with as many watches as it may have gets 429 for one more, until one ends', async () => {
  const watch = async (): Promise<{ answer: Response; end: () => Promise<void> }> => {
    const ending = new AbortController();
    const answer = await fetch(`${instance.baseUrl}/watch/v1/events?tenants=acme`, {
      headers: { authorization: `Bearer ${acme}`, accept: 'text/event-stream' },
      signal: ending.signal,
    });
    return {
      answer,
      async end() {
        ending.abort();
        await answer.text().catch(() => undefined);
      },
    };
  };
  const [first, second] = [await watch(), await watch()];
  expect([first.answer.status, second.answer.status]).toEqual([200, 200]);
  const third = await watch();
  expect(third.answer.status).toBe(429);
  expect(third.answer.headers.get('retry-after')).toBe('10');
  await first.end();
  await expect
    .poll(async () => {
      const next = await watch();
      await next.end();
      return next.answer.status;
    })
    .toBe(200);
  const metrics = await (await fetch(`${instance.opsUrl}/metrics`)).text();
  expect(metrics).toMatch(/plumbline_refused_by_limit_total\{limit="watchers"\} [1-9]/);
  await second.end();
});

async function create(name: string, query: string = ''): Promise<Response> {
  const body = { apiVersion: 'example.dev/v1', kind: 'Widget', metadata: { name }, spec: { size: 1 } };
  return call(acme, 'POST', WIDGETS + query, body);
}

async function call(
  token: string,
  method: string,
  path: string,
  body?: object,
  type: string = 'application/json',
): Promise<Response> {
  return fetch(instance.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': type }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}
