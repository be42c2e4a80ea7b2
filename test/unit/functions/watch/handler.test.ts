import { expect, test } from 'vitest';
import type { ResourceStore, Snapshot } from '#core/ports/resources.ts';
import type { Hub } from '#functions/watch/hub.ts';
import { fakeWatch } from '#test/unit/functions/watch/fake-watch.ts';
import { type FakeDirectory, fakeDirectory, fakeLog, type FakeLog, settle } from '#test/unit/functions/watch/fakes.ts';

const MAX = 256;

test('a watch that is too wide by now is 400 before a stream, and gives its snapshot back', async () => {
  const { ask, directory, snapshots } = world(...upTo(MAX));
  await begun(await ask());
  directory.open(MAX + 1);
  for (const query of ['', '?initial=true', '?from=earliest']) {
    const answer = await ask(query);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([400, 'application/json']);
  }
  expect(snapshots).toEqual({ opened: 1, closed: 1 });
});

test('an initial watch gives its snapshot back when it was read, and when its tenant does not exist', async () => {
  const { ask, snapshots } = world(1);
  expect((await ask('?initial=true&tenants=t9')).status).toBe(404);
  expect(snapshots).toEqual({ opened: 1, closed: 1 });
  await begun(await ask('?initial=true'));
  await settle();
  expect(snapshots).toEqual({ opened: 2, closed: 2 });
});

test('a watch that resumes over more deleted and new tenants than a cursor holds sees the old ones end first', async () => {
  const { ask, directory, log } = world(...upTo(200));
  const cursor = upTo(200)
    .map((id) => `${id}:0`)
    .join(',');
  for (let id = 1; id <= 100; id += 1) directory.close(id);
  directory.open(...Array.from({ length: 100 }, (_, index) => 201 + index));
  for (const id of [1n, 150n, 250n]) log.fill(id, 1);
  const text = await begun(await ask(`?from=${cursor}`), '"id":"250-1"');
  expect(text).not.toContain('ERROR');
  expect(text.match(/TenantGone/g)).toHaveLength(100);
  expect(text.match(/"id":"\d+-1"/g)).toEqual(['"id":"1-1"', '"id":"150-1"', '"id":"250-1"']);
});

test('a watch whose server stops while it begins is 503, and nothing stays behind', async () => {
  const { ask, directory, hub, snapshots } = world(1);
  await begun(await ask());
  for (const query of ['', '?initial=true']) {
    const held = Promise.withResolvers<void>();
    directory.beforeList = () => held.promise;
    const answer = ask(query);
    await settle();
    const stopped = hub.stop();
    held.resolve();
    expect((await answer).status).toBe(503);
    await stopped;
  }
  expect(snapshots.opened).toBe(snapshots.closed);
});

test('the directory is asked once for a watch that begins', async () => {
  const { ask, directory } = world(1);
  await begun(await ask('?tenants=t1'));
  directory.queries.length = 0;
  await begun(await ask('?tenants=t1'));
  expect(directory.queries).toHaveLength(1);
});

interface World {
  readonly log: FakeLog;
  readonly directory: FakeDirectory;
  readonly hub: Hub;
  readonly snapshots: { opened: number; closed: number };
  ask(query?: string): Promise<Response>;
}

function world(...ids: readonly number[]): World {
  const log = fakeLog();
  const directory = fakeDirectory(...ids);
  const snapshots = { opened: 0, closed: 0 };
  const { app, hub } = fakeWatch({ log, streams: directory, store: { snapshot } as unknown as ResourceStore });
  return { log, directory, hub, snapshots, ask: async (query = '') => app.request(`/watch/v1/events${query}`) };

  async function snapshot(): Promise<Snapshot> {
    const streams = await directory.list({ tenants: '*' });
    let isClosed = false;
    snapshots.opened += 1;
    return {
      streams: new Map(streams.map(({ id, tenant }) => [tenant, id])),
      head: new Map(streams.map(({ id }) => [id, { seq: 0n, position: 0n }])),
      pages: (async function* pages() {})(),
      async close() {
        if (!isClosed) snapshots.closed += 1;
        isClosed = true;
      },
    };
  }
}

/** What a stream has sent up to this text; then the client goes. */
async function begun(answer: Response, until: string = 'READY'): Promise<string> {
  expect(answer.status).toBe(200);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of answer.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes(until)) break;
  }
  return text;
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
