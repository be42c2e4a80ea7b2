/** Blocks of tokens, as their bearers meet them. Operators make them, so this is no part of the black-box suites. */

import { decodeJwt } from 'jose';
import { afterAll, describe, expect, test } from 'vitest';

import { addTokenBlock, removeTokenBlock } from '#adapters/postgres/token-block-list.ts';
import type { TokenBlock } from '#core/token-block.ts';
import { clientWith, type Client } from '#test/http/client.ts';
import { expectStatus, TENANTS, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import {
  changesOf,
  createTenant,
  expectFailure,
  type OtherTenant,
  readyOf,
  settle,
  storyOf,
  watchUrl,
} from '#test/http/watch/world.ts';
import type { Grant } from '#test/http/target.ts';
import { useOwnInstance } from '#test/support/own-instance.ts';
import { openSse, type SseClient, type SseEvent } from '#test/support/sse-client.ts';

/** What is promised. */
const DEADLINE_MS = 5_000;

const instance = useOwnInstance();
const world = useWorld(instance.open);
const opened: SseClient[] = [];
afterAll(() => Promise.all(opened.map((client) => client.close())));

interface Bearer {
  readonly subject: string;
  readonly tokenId: string;
  readonly api: Client;
  watch(query?: Readonly<Record<string, string>>, lastEventId?: string): Promise<SseClient>;
}

/** Somebody of whom nothing is blocked yet. */
async function bearer(grant: Partial<Grant> = {}): Promise<Bearer> {
  const subject = grant.subject ?? uniqueName('s');
  const token = await world.target.token({ roles: ['editor'], tenants: [world.tenant], subject, ...grant });
  return {
    subject,
    tokenId: decodeJwt(token).jti ?? '',
    api: clientWith(world.target.baseUrl, `Bearer ${token}`),
    async watch(query = {}, lastEventId = '') {
      const client = await openSse(watchUrl(world.target.baseUrl, query), { token, lastEventId });
      opened.push(client);
      expect((await client.next()).event).toBe('READY');
      return client;
    },
  };
}

async function block(given: TokenBlock, forSeconds?: number): Promise<void> {
  await addTokenBlock(instance.sql, { block: given, reason: 'a test', forSeconds, by: 'test' });
}

async function unblock(given: TokenBlock): Promise<void> {
  expect(await removeTokenBlock(instance.sql, given)).toBe(true);
}

/** Waits until requests are answered so. */
async function untilStatus({ api }: Bearer, path: string, status: number): Promise<void> {
  await expect.poll(async () => (await api.get(path)).status, { timeout: DEADLINE_MS, interval: 50 }).toBe(status);
}

async function make({ widgets }: Pick<OtherTenant, 'widgets'>, name: string): Promise<void> {
  expect((await world.admin.post(widgets, { metadata: { name } })).status).toBe(201);
}

/** How the server ended a stream. */
async function endOf(client: SseClient): ReturnType<SseClient['next']> {
  expect(await client.ended).toBeUndefined();
  const last = client.events.at(-1);
  if (!last) throw new Error('the stream was empty');
  return last;
}

test('who loses a tenant confirms nothing of it any more: what was delivered before is unknown', async () => {
  const lost = await createTenant(world);
  const member = await bearer({ tenants: [world.tenant, lost.name] });
  const client = await member.watch({ group: uniqueName('g'), start: 'now', kinds: 'Widget' });
  await make(lost, 'w');
  await make(world, uniqueName('w'));
  await client.next();
  await client.next();
  const idOf = (tenant: string): string | undefined => client.events.find(({ data }) => data.tenant === tenant)?.id;
  const [hidden, seen] = [idOf(lost.name), idOf(world.tenant)];
  await block({ subject: member.subject, tenant: lost.name });
  await untilStatus(member, lost.widgets, 404);
  const acks = '/watch/v1/acks';
  expectStatus(await member.api.post(acks, { acks: [hidden] }), 404, 'NotFound', 'no group of yours');
  const { body } = await member.api.post(acks, { acks: [hidden, seen] });
  expect(body.results).toEqual([{ status: 'Unknown' }, { status: 'Acked' }]);
});

test('of a group, members whose token does not lose the tenant get all of it, dead letters too', async () => {
  const lost = await createTenant(world);
  const subject = uniqueName('s');
  const roles = ['admin'] as const;
  const tenants = [world.tenant, lost.name];
  const [cut, whole] = [await bearer({ subject, roles, tenants }), await bearer({ subject, roles, tenants })];
  await block({ tokenId: cut.tokenId, tenant: lost.name });
  await untilStatus(cut, lost.widgets, 404);
  const group = uniqueName('g');
  const query = { group, start: 'now', kinds: 'Widget', maxAttempts: '2' };
  const blind = [await cut.watch(query), await cut.watch(query)];
  const member = await whole.watch(query);
  const names = Array.from({ length: 30 }, () => uniqueName('w'));
  for (const name of names) await make(lost, name);
  const came = (): ReadonlySet<string> => new Set(changesOf(member).map(({ data }) => data.data.metadata.name));
  await expect.poll(() => names.filter((name) => !came().has(name)), { timeout: 20_000 }).toEqual([]);
  const letters = `/watch/v1/groups/${group}/deadletters`;
  for (const attempt of [1, 2]) {
    const isFirst = ({ data }: SseEvent): boolean => data.data?.metadata.name === names[0] && data.attempt === attempt;
    await expect.poll(() => member.events.some(isFirst), { timeout: 20_000 }).toBe(true);
    await whole.api.post('/watch/v1/acks', { nacks: [{ token: member.events.find(isFirst)?.id }] });
  }
  const parked = async (): Promise<string | undefined> => (await whole.api.get(letters)).body.items[0]?.id;
  await expect.poll(parked, { timeout: 20_000 }).toBeDefined();
  const letter = await parked();
  expect((await whole.api.post(`${letters}/${letter}/retry`, { reason: 'a test' })).status).toBe(200);
  const isRetry = ({ data }: SseEvent): boolean => data.deadletter === letter;
  await expect.poll(() => member.events.some(isRetry), { timeout: 20_000 }).toBe(true);
  for (const client of blind) expect(changesOf(client)).toEqual([]);
}, 60_000);

describe('a blocked subject', () => {
  test('is 401 everywhere, its streams end with ERROR 401, and nobody else notices', async () => {
    const blocked = await bearer();
    const sameSubject = await bearer({ subject: blocked.subject, tenants: '*' });
    const other = await bearer();
    const streams = [await blocked.watch(), await blocked.watch({ tenants: world.tenant }), await sameSubject.watch()];
    const untouched = await other.watch();
    await block({ subject: blocked.subject });
    for (const stream of streams) {
      const { event, id, data } = await stream.waitFor(({ event: type }) => type === 'ERROR', DEADLINE_MS);
      expect([event, id]).toEqual(['ERROR', undefined]);
      expectFailure(data, 401, 'Unauthorized', 'blocked');
      await endOf(stream);
    }
    for (const path of [world.widgets, '/watch/v1/events', TENANTS]) {
      expectStatus(await blocked.api.get(path), 401, 'Unauthorized', 'blocked');
      expectStatus(await sameSubject.api.get(path), 401, 'Unauthorized', 'blocked');
    }
    await make(world, uniqueName('w'));
    await untouched.next();
    expect(untouched.isEnded).toBe(false);
    await unblock({ subject: blocked.subject });
    await untilStatus(blocked, world.widgets, 200);
    await blocked.watch({}, streams[0]?.lastEventId);
  });

  test('comes back by itself when the block was for a time', async () => {
    const blocked = await bearer();
    await block({ subject: blocked.subject }, 1);
    await untilStatus(blocked, world.widgets, 401);
    await untilStatus(blocked, world.widgets, 200);
  });
});

test('of a subject, one token can be blocked by its id', async () => {
  const [stolen, other] = [await bearer({ subject: 'ann' }), await bearer({ subject: 'ann' })];
  const [cut, kept] = [await stolen.watch(), await other.watch()];
  await block({ tokenId: stolen.tokenId });
  expectFailure((await cut.waitFor(({ event }) => event === 'ERROR', DEADLINE_MS)).data, 401, 'Unauthorized');
  expectStatus(await stolen.api.get(world.widgets), 401, 'Unauthorized');
  expect((await other.api.get(world.widgets)).status).toBe(200);
  expect(kept.isEnded).toBe(false);
});

describe('a subject whose token is replaced by one that may less, and blocked', () => {
  test('loses its streams, and goes on without a gap where it may still watch', async () => {
    const lost = await createTenant(world);
    const subject = uniqueName('s');
    const old = await bearer({ subject, roles: ['editor'], tenants: [world.tenant, lost.name] });
    const streams = [await old.watch({ tenants: world.tenant }), await old.watch()];
    const before = uniqueName('w');
    await make(world, before);
    for (const stream of streams) await stream.waitFor(({ data }) => data.data?.metadata.name === before);
    await block({ tokenId: old.tokenId });
    for (const stream of streams) {
      expectFailure((await stream.waitFor(({ event }) => event === 'ERROR', DEADLINE_MS)).data, 401, 'Unauthorized');
      await endOf(stream);
    }
    const names = [uniqueName('w'), uniqueName('w')];
    for (const name of names) await make(world, name);

    const viewer = await bearer({ subject, roles: ['viewer'], tenants: [world.tenant] });
    expectStatus(await viewer.api.post(world.widgets, { metadata: { name: 'new' } }), 403, 'Forbidden');
    const again = await viewer.watch({ tenants: world.tenant }, streams[0]?.lastEventId);
    await again.waitFor(({ data }) => data.data?.metadata.name === names[1]);
    expect(storyOf(again)).toEqual(names.map((name) => `ADDED ${name}`));
    // A cursor over all that the old token saw is none of the new one: its client is told to list again.
    const refused = await openSse(watchUrl(world.target.baseUrl), {
      token: await world.target.token({ subject, roles: ['viewer'], tenants: [world.tenant] }),
      lastEventId: streams[1]?.lastEventId ?? '',
    });
    opened.push(refused);
    const { event, id, data } = await refused.next();
    expect([event, id]).toEqual(['ERROR', '']);
    expectFailure(data, 400, 'BadRequest');
    const nobody = await bearer({ subject, roles: [] });
    expectStatus(await nobody.api.get(watchPath({ tenants: world.tenant })), 403, 'Forbidden');
  });
});

describe('a tenant that is blocked', () => {
  test('does not exist for a token that names it: not for reads, writes, lists and watches', async () => {
    const lost = await createTenant(world);
    const caller = await bearer({ tenants: [world.tenant, lost.name] });
    await make(lost, 'secret');
    await make(world, uniqueName('w'));
    await block({ subject: caller.subject, tenant: lost.name });
    await untilStatus(caller, `${lost.widgets}/secret`, 404);
    expectStatus(await caller.api.get(lost.widgets), 404, 'NotFound');
    expectStatus(await caller.api.post(lost.widgets, { metadata: { name: 'new' } }), 404, 'NotFound');
    expectStatus(await caller.api.get(`${TENANTS}/${lost.name}`), 404, 'NotFound');
    expectStatus(await caller.api.get(`/api/v1/namespaces/${lost.name}/events`), 404, 'NotFound');
    expectStatus(await caller.api.get(watchPath({ tenants: lost.name })), 404, 'NotFound');
    for (const path of ['/apis/example.dev/v1/widgets', TENANTS]) {
      const { status, text } = await caller.api.get(path);
      expect(status).toBe(200);
      expect(text).not.toContain(lost.name);
      expect(text).toContain(world.tenant);
    }
    const watch = await caller.watch({ from: 'earliest' });
    expect(readyOf(watch).data.tenants).toEqual(['shared', world.tenant].toSorted());
    const initial = await caller.watch({ initial: 'true' });
    await initial.waitFor(({ event }) => event === 'BOOKMARK');
    await make(world, 'mark');
    await watch.waitFor(({ data }) => data.subject === 'example.dev/Widget/mark');
    expect(JSON.stringify([watch.events, initial.events])).not.toContain(lost.name);
  });

  test('does not exist for a token of all tenants, which sees all others, also new ones, and cannot write what is cluster-scoped', async () => {
    const lost = await createTenant(world);
    const caller = await bearer({ tenants: '*', roles: ['admin'] });
    await make(lost, 'secret');
    await block({ subject: caller.subject, tenant: lost.name });
    await untilStatus(caller, `${lost.widgets}/secret`, 404);
    expectStatus(await caller.api.get(watchPath({ tenants: lost.name })), 404, 'NotFound');
    expectStatus(await caller.api.delete(`${TENANTS}/${lost.name}`), 403, 'Forbidden');
    expectStatus(await caller.api.post(TENANTS, { metadata: { name: uniqueName('t') } }), 403, 'Forbidden');
    const { text } = await caller.api.get('/apis/example.dev/v1/widgets');
    expect(text).not.toContain(lost.name);
    const watch = await caller.watch({ kinds: 'Widget' });
    const newer = await createTenant(world);
    await make(lost, 'hidden');
    expect((await caller.api.post(newer.widgets, { metadata: { name: 'seen' } })).status).toBe(201);
    expect((await watch.next()).data.tenant).toBe(newer.name);
    expect(storyOf(watch)).toEqual(['ADDED seen']);
  });

  test.each(['a token that names its tenants', 'a token of all tenants'])(
    'is cut from open streams of %s, which go on without it and without a gap',
    async (whose) => {
      const lost = await createTenant(world);
      const isOfAll = whose.includes('all');
      const caller = await bearer({ tenants: isOfAll ? '*' : [world.tenant, lost.name] });
      const query = { kinds: 'Widget' };
      const client = await caller.watch(query);
      const atFirst = client.lastEventId;
      const named = await caller.watch({ tenants: `${world.tenant},${lost.name}` });
      const without = await caller.watch({ tenants: world.tenant });
      await make(lost, 'seen');
      await client.waitFor(({ data }) => data.data?.metadata.name === 'seen');

      await block({ subject: caller.subject, tenant: lost.name });
      const error = await client.waitFor(({ event }) => event === 'ERROR', DEADLINE_MS);
      expectFailure(error.data, 403, 'Forbidden', 'not visible');
      expect(error.id).toMatch(/^[\w-]{20,}$/);
      const forgotten = await named.waitFor(({ event }) => event === 'ERROR', DEADLINE_MS);
      expectFailure(forgotten.data, 403, 'Forbidden');
      expect(forgotten.id).toBe('');
      await Promise.all([endOf(client), endOf(named)]);

      const names = ['one', 'two', 'three'].map((name) => uniqueName(name));
      await make(lost, uniqueName('hidden'));
      for (const name of names) await make(world, name);
      // Also who never got the ERROR: its last id is of the time before.
      for (const lastEventId of [client.lastEventId, atFirst]) {
        const again = await caller.watch(query, lastEventId);
        await again.waitFor(({ data }) => data.data?.metadata.name === names[2]);
        const own = changesOf(again).filter(({ data }) => data.tenant === world.tenant);
        expect(own.map(({ data }) => data.data.metadata.name)).toEqual(names);
        expect(JSON.stringify(again.events)).not.toContain(lost.name);
      }
      await without.waitFor(({ data }) => data.data?.metadata.name === names[2]);
      expect(without.isEnded).toBe(false);
    },
  );

  test('and seen again ends the stream in peace, and comes with the next one from its beginning', async () => {
    const back = await createTenant(world);
    const caller = await bearer({ tenants: [world.tenant, back.name] });
    await make(back, 'before');
    await block({ subject: caller.subject, tenant: back.name });
    await untilStatus(caller, back.widgets, 404);
    const client = await caller.watch();
    await make(back, 'meanwhile');
    const name = uniqueName('own');
    await make(world, name);
    await client.waitFor(({ data }) => data.data?.metadata.name === name);
    await unblock({ subject: caller.subject, tenant: back.name });
    const end = await endOf(client);
    expect([end.event, end.id]).toEqual(['BOOKMARK', client.lastEventId]);
    const again = await caller.watch({}, client.lastEventId);
    expect(readyOf(again).data.tenants).toEqual([back.name, 'shared', world.tenant].toSorted());
    await again.waitFor(({ data }) => data.data?.metadata.name === 'meanwhile');
    expect(storyOf(again)).toEqual(['ADDED before', 'ADDED meanwhile']);
  });

  test('is kept from the members of a group, which have the others, and is theirs from where it was when it is seen again', async () => {
    const back = await createTenant(world);
    const caller = await bearer({ tenants: [world.tenant, back.name] });
    const query = { group: uniqueName('g') };
    const client = await caller.watch(query);
    await make(back, 'before');
    const before = await client.waitFor(({ data }) => data.data?.metadata.name === 'before');
    expect((await caller.api.post('/watch/v1/acks', { acks: [before.id] })).status).toBe(200);
    await block({ subject: caller.subject, tenant: back.name });
    expectFailure((await client.waitFor(({ event }) => event === 'ERROR', DEADLINE_MS)).data, 403, 'Forbidden');
    await endOf(client);

    const without = await caller.watch(query);
    expect(readyOf(without).data.tenants).toEqual(['shared', world.tenant].toSorted());
    await make(back, 'meanwhile');
    const name = uniqueName('own');
    await make(world, name);
    await without.waitFor(({ data }) => data.data?.metadata.name === name);
    expect(JSON.stringify(without.events)).not.toContain(back.name);
    expectStatus(await caller.api.get(`/watch/v1/groups/${query.group}`), 404, 'NotFound');

    await unblock({ subject: caller.subject, tenant: back.name });
    await endOf(without);
    const again = await caller.watch(query);
    await again.waitFor(({ data }) => data.data?.metadata.name === 'meanwhile');
    expect(storyOf(again)).not.toContain('ADDED before');
  });

  test('is left out by a watch from a list that had it', async () => {
    const lost = await createTenant(world);
    const caller = await bearer({ tenants: [world.tenant, lost.name] });
    await settle(world);
    const { cursor } = (await caller.api.get('/apis/example.dev/v1/widgets')).body.metadata;
    await block({ subject: caller.subject, tenant: lost.name });
    await untilStatus(caller, lost.widgets, 404);
    await make(lost, 'hidden');
    const name = uniqueName('own');
    await make(world, name);
    const client = await caller.watch({ from: cursor });
    await client.waitFor(({ data }) => data.data?.metadata.name === name);
    expect(storyOf(client)).toEqual([`ADDED ${name}`]);
    const narrowed = (await caller.api.get('/apis/example.dev/v1/widgets')).body.metadata.cursor;
    expect(readyOf(await caller.watch({ from: narrowed })).data.mode).toBe('resume');
  });

  test('can be the shared one', async () => {
    const caller = await bearer();
    const client = await caller.watch();
    await block({ subject: caller.subject, tenant: 'shared' });
    expectFailure((await client.waitFor(({ event }) => event === 'ERROR', DEADLINE_MS)).data, 403, 'Forbidden');
    expectStatus(await caller.api.get('/apis/example.dev/v1/namespaces/shared/widgets'), 404, 'NotFound');
    expect(readyOf(await caller.watch({}, client.lastEventId)).data.tenants).toEqual([world.tenant]);
  });

  test('of which a token grants nothing changes nothing', async () => {
    const stranger = await createTenant(world);
    const caller = await bearer();
    const client = await caller.watch();
    await block({ subject: caller.subject, tenant: stranger.name });
    const other = await bearer();
    // Blocks are read in order: this one is behind the other.
    await block({ subject: other.subject });
    await untilStatus(other, world.widgets, 401);
    const name = uniqueName('w');
    await make(world, name);
    await client.waitFor(({ data }) => data.data?.metadata.name === name);
    expect(client.isEnded).toBe(false);
  });
});

test('a tenant that is deleted leaves open streams at once, however long those who are away have', async () => {
  const gone = await createTenant(world);
  const caller = await bearer({ tenants: [world.tenant, gone.name] });
  const [all, named] = [await caller.watch(), await caller.watch({ tenants: gone.name })];
  expect((await world.admin.delete(`${TENANTS}/${gone.name}`)).status).toBe(202);
  const isGone = (event: SseEvent): boolean => event.data.reason === 'TenantGone' && event.data.tenant === gone.name;
  await all.waitFor(isGone, DEADLINE_MS);
  await named.waitFor(isGone, DEADLINE_MS);
  await endOf(named);
  expect(all.isEnded).toBe(false);
});

function watchPath(query: Readonly<Record<string, string>>): string {
  return watchUrl('', query);
}
