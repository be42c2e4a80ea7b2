import { beforeAll, describe, expect, test } from 'vitest';

import { type Answer, clientOf, type Client } from '#test/http/client.ts';
import { createWidget, expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const NAMES = ['a1', 'a2', 'b1', 'b2', 'c1'];

// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
function namesOf(body: any): string[] {
  return body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
}

/** What others have written in the tenant that everybody sees is no concern of these tests. */
// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
function notShared(body: any): { items: unknown[] } {
  const isOwn = (item: { metadata: { namespace: string } }): boolean => item.metadata.namespace !== 'shared';
  return { items: body.items.filter(isOwn) };
}

export function lists(open: OpenTarget): void {
  const world = useWorld(open);

  beforeAll(async () => {
    for (const name of NAMES) await createWidget(world, { name, labels: { letter: name.slice(0, 1) } }, { size: 1 });
  });

  test('a list has its kind, whole objects in the order of names, and a cursor', async () => {
    const { status, body, headers } = await world.viewer.get(world.widgets);
    expect(status).toBe(200);
    expect(headers.get('Warning')).toBeNull();
    expect(body).toMatchObject({ apiVersion: 'example.dev/v1', kind: 'WidgetList' });
    expect(Object.keys(body.metadata)).toEqual(['cursor']);
    expect(body.metadata.cursor).toMatch(/^[\w-]{20,}$/);
    expect(namesOf(body)).toEqual(NAMES);
    expect(body.items[0]).toEqual((await world.viewer.get(world.widget('a1'))).body);
  });

  test('a list of nothing is a list', async () => {
    const { body } = await world.viewer.get(`/apis/plumbline.dev/v1/namespaces/${world.tenant}/rolebindings`);
    expect(body).toMatchObject({ kind: 'RoleBindingList', items: [], metadata: { cursor: expect.any(String) } });
  });

  test('a list shows what its caller has just written', async () => {
    for (let round = 0; round < 20; round++) {
      const { metadata } = await createWidget(world, { labels: { round: 'x' } });
      expect(namesOf((await world.editor.get(`${world.widgets}?labelSelector=round`)).body)).toContain(metadata.name);
      await world.editor.delete(world.widget(metadata.name));
      expect(namesOf((await world.editor.get(`${world.widgets}?labelSelector=round`)).body)).not.toContain(
        metadata.name,
      );
    }
  });

  describe('pages', () => {
    test('join to the whole list, each with the cursor of the first', async () => {
      const seen: string[] = [];
      const cursors = new Set<string>();
      let next = '';
      do {
        const { body } = await world.viewer.get(`${world.widgets}?limit=2&continue=${encodeURIComponent(next)}`);
        expect(body.items.length).toBeLessThanOrEqual(2);
        seen.push(...namesOf(body));
        cursors.add(body.metadata.cursor);
        next = body.metadata.continue ?? '';
      } while (next !== '');
      expect(seen).toEqual(NAMES);
      expect(cursors.size).toBe(1);
    });

    test('show every object that lives through the listing once, whatever comes and goes between', async () => {
      const first = (await world.viewer.get(`${world.widgets}?limit=2`)).body;
      expect(namesOf(first)).toEqual(['a1', 'a2']);
      await createWidget(world, { name: 'a0', labels: { extra: 'x' } });
      await createWidget(world, { name: 'b0', labels: { extra: 'x' } });
      await world.editor.delete(world.widget('a2'));
      const second = (await world.viewer.get(`${world.widgets}?continue=${first.metadata.continue}`)).body;
      expect(namesOf(second)).toEqual(['b0', 'b1', 'b2', 'c1']);
      expect(second.metadata).toEqual({ cursor: first.metadata.cursor });
      await world.editor.delete(world.widget('a0'));
      await world.editor.delete(world.widget('b0'));
      await createWidget(world, { name: 'a2', labels: { letter: 'a' } }, { size: 1 });
    });

    test('say how many objects follow, unless they are selected', async () => {
      const counts: unknown[] = [];
      let next = '';
      do {
        const { body } = await world.viewer.get(`${world.widgets}?limit=2&continue=${next}`);
        counts.push(body.metadata.remainingItemCount);
        next = body.metadata.continue ?? '';
      } while (next !== '');
      expect(counts).toEqual([3, 1, undefined]);
      for (const selector of ['labelSelector=letter', 'fieldSelector=metadata.namespace%3D' + world.tenant]) {
        const { metadata } = (await world.viewer.get(`${world.widgets}?limit=2&${selector}`)).body;
        expect(metadata).toHaveProperty('continue');
        expect(metadata).not.toHaveProperty('remainingItemCount');
      }
    });

    test('end without a token when the last object is on the page', async () => {
      expect((await world.viewer.get(`${world.widgets}?limit=5`)).body.metadata).not.toHaveProperty('continue');
      expect((await world.viewer.get(`${world.widgets}?limit=4`)).body.metadata).toHaveProperty('continue');
    });

    test('go on only for the list that they belong to', async () => {
      const { body } = await world.viewer.get(`${world.widgets}?limit=2`);
      const token = body.metadata.continue;
      const stranger = await clientOf(world.target, { roles: ['viewer'], tenants: [world.tenant, 'another'] });
      for (const answer of [
        await world.viewer.get(`${world.widgets}?labelSelector=letter%3Da&continue=${token}`),
        await world.viewer.get(`/apis/example.dev/v1/widgets?continue=${token}`),
        await world.viewer.get(`/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults?continue=${token}`),
        await stranger.get(`${world.widgets}?continue=${token}`),
        await world.viewer.get(`${world.widgets}?continue=${token.slice(0, -2)}AA`),
        await world.viewer.get(`${world.widgets}?continue=${body.metadata.cursor}`),
        await world.viewer.get(`${world.widgets}?continue=%00`),
      ]) {
        expectStatus(answer, 400, 'BadRequest', 'continue');
      }
    });
  });

  describe('selectors', () => {
    test.for([
      ['labelSelector=letter%3Da', ['a1', 'a2']],
      ['labelSelector=letter+in+(a,c)', ['a1', 'a2', 'c1']],
      ['labelSelector=letter+notin+(a,c)', ['b1', 'b2']],
      ['labelSelector=letter,letter!%3Db', ['a1', 'a2', 'c1']],
      ['labelSelector=!letter', []],
      ['fieldSelector=metadata.name%3Db1', ['b1']],
      ['fieldSelector=metadata.name%3D%3Db1&labelSelector=letter%3Da', []],
      ['fieldSelector=metadata.name%3Da1,metadata.name%3Da2', []],
      ['fieldSelector=metadata.name%3DNo+Such+Name', []],
      ['fieldSelector=metadata.namespace%3Danother', []],
      ['fieldSelector=metadata.name!%3Da1,metadata.name!%3D%00,metadata.namespace!%3Danother', NAMES.slice(1)],
      ['fieldSelector=metadata.name%3Da1,metadata.name!%3Da1', []],
      ['labelSelector=&fieldSelector=&limit=', NAMES],
    ] as const)('%s selects %j', async ([query, names]) => {
      const { status, body } = await world.viewer.get(`${world.widgets}?${query}`);
      expect(status).toBe(200);
      expect(namesOf(body)).toEqual(names);
      expect(body.metadata.cursor).toEqual(expect.any(String));
    });

    test('page like any list', async () => {
      const selector = 'labelSelector=letter+in+(a,b)';
      const { body } = await world.viewer.get(`${world.widgets}?${selector}&limit=3`);
      const rest = await world.viewer.get(`${world.widgets}?${selector}&limit=3&continue=${body.metadata.continue}`);
      expect([namesOf(body), namesOf(rest.body)]).toEqual([['a1', 'a2', 'b1'], ['b2']]);
    });
  });

  test.for([
    ['limit=-1', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['limit=1e2', 'limit'],
    ['continue=nonsense', 'continue'],
    ['labelSelector=a%3Db%3Dc', 'labelSelector'],
    ['labelSelector=%00', 'labelSelector'],
    ['fieldSelector=spec.size%3D1', 'field label not supported: spec.size'],
    ['fieldSelector=metadata.name!a', 'fieldSelector'],
    ['watch=yes', 'watch'],
    ['watch=true', '/watch/v1/events'],
  ] as const)('the query %s is a bad request that names the parameter', async ([query, words]) => {
    expectStatus(await world.viewer.get(`${world.widgets}?${query}`), 400, 'BadRequest', words);
  });

  test.for(['0', '1001', '10000000', '9007199254740991'])('limit=%s is what a page has at most', async (limit) => {
    const { status, body } = await world.viewer.get(`${world.widgets}?limit=${limit}`);
    expect([status, namesOf(body)]).toEqual([200, NAMES]);
  });

  test('parameters that Kubernetes clients add are ignored', async () => {
    const query =
      'pretty=true&resourceVersion=0&resourceVersionMatch=NotOlderThan&timeout=32s&timeoutSeconds=5&allowWatchBookmarks=true&includeObject=Object&watch=false';
    expect(namesOf((await world.viewer.get(`${world.widgets}?${query}`)).body)).toEqual(NAMES);
  });

  describe('resourceVersion', () => {
    const list = async (query: string): Promise<Answer> => world.viewer.get(`${world.widgets}?${query}`);
    let newest: string;

    beforeAll(async () => {
      newest = (await world.viewer.get(world.widget('a1'))).body.metadata.resourceVersion;
    });

    test('a list that shall not be older than what was read is answered', async () => {
      for (const match of ['', '&resourceVersionMatch=NotOlderThan']) {
        const { status, body } = await list(`resourceVersion=${newest}${match}`);
        expect([status, namesOf(body)]).toEqual([200, NAMES]);
      }
    });

    test('a version that was never given is 504 with the cause that makes clients list anew', async () => {
      const answer = await list('resourceVersion=9223372036854775807');
      expectStatus(answer, 504, 'Timeout', 'Too large resource version');
      expect(answer.headers.get('Retry-After')).toBe('1');
      expect(answer.body.details).toMatchObject({
        causes: [{ reason: 'ResourceVersionTooLarge' }],
        retryAfterSeconds: 1,
      });
    });

    test('a state of the past is 410: only the newest is there', async () => {
      expectStatus(await list(`resourceVersion=${newest}&resourceVersionMatch=Exact`), 410, 'Expired');
    });

    test.for([
      'resourceVersionMatch=NotOlderThan',
      'resourceVersion=1&resourceVersionMatch=Newest',
      'resourceVersion=0&resourceVersionMatch=Exact',
    ])('%s is invalid', async (query) => {
      const answer = await list(query);
      expectStatus(answer, 422, 'Invalid', 'ListOptions');
      expect(answer.body.details.causes[0].field).toBe('resourceVersionMatch');
    });

    test('beside a continue token it is refused, for the pages of a list are of one state', async () => {
      const { continue: token } = (await list('limit=2')).body.metadata;
      expectStatus(await list(`limit=2&continue=${token}&resourceVersion=${newest}`), 400, 'BadRequest', 'continue');
      expect((await list(`limit=2&continue=${token}&resourceVersion=0`)).status).toBe(200);
      expectStatus(
        await list(`limit=2&continue=${token}&resourceVersion=0&resourceVersionMatch=NotOlderThan`),
        422,
        'Invalid',
      );
    });

    test.for(['-1', '01', '1.5', 'abc', '%00', '9'.repeat(40), '__proto__'])('%s is no version', async (version) => {
      expectStatus(await list(`resourceVersion=${version}`), 400, 'BadRequest', 'resourceVersion');
    });
  });

  describe('over all tenants', () => {
    let other: string;
    let both: Client;

    beforeAll(async () => {
      other = uniqueName('t');
      await world.admin.post(TENANTS, { metadata: { name: other } });
      await world.admin.post(`/apis/example.dev/v1/namespaces/${other}/widgets`, { metadata: { name: 'z1' } });
      both = await clientOf(world.target, { roles: ['viewer'], tenants: [world.tenant, other] });
    });

    test('a caller sees the objects of its tenants and of the shared one, page by page', async () => {
      const all = (await both.get('/apis/example.dev/v1/widgets')).body;
      expect(namesOf(notShared(all)).toSorted()).toEqual([...NAMES, 'z1']);
      const paged: string[] = [];
      let next = '';
      do {
        const { body } = await both.get(`/apis/example.dev/v1/widgets?limit=1&continue=${next}`);
        paged.push(...namesOf(body));
        next = body.metadata.continue ?? '';
      } while (next !== '');
      expect(paged).toEqual(namesOf(all));
      const own = (await world.viewer.get('/apis/example.dev/v1/widgets')).body;
      expect(namesOf(notShared(own))).toEqual(NAMES);
    });

    test('the namespace can be selected, and only one that the caller sees', async () => {
      const select = (name: string): string =>
        `/apis/example.dev/v1/widgets?fieldSelector=metadata.namespace%3D${name}`;
      expect(namesOf((await both.get(select(other))).body)).toEqual(['z1']);
      expect(namesOf((await world.viewer.get(select(other))).body)).toEqual([]);
      const without = await both.get(select(other).replace('%3D', '!%3D'));
      expect(namesOf(notShared(without.body))).toEqual(NAMES);
    });

    test('a caller of all tenants sees them all, with a cursor', async () => {
      const { body } = await world.admin.get('/apis/example.dev/v1/widgets?labelSelector=letter&limit=1000');
      expect(namesOf(body)).toEqual(expect.arrayContaining(NAMES));
      expect(body.metadata.cursor).toEqual(expect.any(String));
    });

    test('nothing is created without a tenant in the path', async () => {
      const answer = await world.admin.post('/apis/example.dev/v1/widgets', { metadata: { name: 'x' } });
      expectStatus(answer, 405, 'MethodNotAllowed');
      expect(answer.headers.get('Allow')).toBe('GET, HEAD');
    });
  });
}
