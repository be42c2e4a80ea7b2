import { afterEach, expect, test } from 'vitest';
import { BadRequest, CursorKeyRetired, Expired, informer, type Informer, type InformerOptions } from 'plumbline/client';
import { type Way, wayTo } from '#test/http/client/cutting.ts';
import { QUICKLY } from '#test/http/client/world.ts';
import { createWidget, removeTenant, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE, viewerOf } from '#test/http/watch/world.ts';
import { createChanges } from '#test/support/changes.ts';
import type { Grant } from '#test/http/target.ts';
import type { OwnServer } from '#test/support/own-server.ts';

const WIDGET = { group: 'example.dev', version: 'v1', kind: 'Widget', plural: 'widgets' } as const;
const DEADLINE_MS = 20_000;

interface Informed {
  readonly cache: Informer<{ size?: number }>;
  /** `+ blue`, `~ blue`, `- blue`, and `? blue` for a deletion that was only noticed. */
  readonly story: readonly string[];
  readonly retries: readonly Error[];
  until(isSo: () => boolean): Promise<void>;
}

export function informing(open: () => Promise<OwnServer>): void {
  const world = useWorld(open);
  const ending: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(ending.splice(0).map((end) => end()));
  });

  async function inform(
    options: Partial<InformerOptions<{ size?: number }>> & { readonly grant?: Grant; readonly all?: boolean } = {},
  ): Promise<Informed> {
    const { grant = viewerOf(world), all = false, ...rest } = options;
    const story: string[] = [];
    const retries: Error[] = [];
    const changes = createChanges();
    const aborter = new AbortController();
    const tell = (line: string): void => {
      story.push(line);
      changes.tell();
    };
    const cache = informer<{ size?: number }>({
      url: world.target.baseUrl,
      token: await world.target.token(grant),
      kind: WIDGET,
      ...(!all && { tenants: [world.tenant] }),
      retry: QUICKLY,
      relistSpreadMs: 20,
      onAdd: ({ metadata }) => tell(`+ ${metadata.name}`),
      onUpdate: ({ metadata }) => tell(`~ ${metadata.name}`),
      onDelete: ({ metadata }, { finalStateUnknown }) => tell(`${finalStateUnknown ? '?' : '-'} ${metadata.name}`),
      onRetry(why) {
        retries.push(why);
        changes.tell();
      },
      signal: aborter.signal,
      ...rest,
    });
    const ended = cache.ended.catch(() => undefined);
    ending.push(async () => {
      aborter.abort();
      await ended;
    });
    return { cache, story, retries, until };

    async function until(isSo: () => boolean): Promise<void> {
      const deadline = performance.now() + DEADLINE_MS;
      while (!isSo()) {
        const remainingMs = deadline - performance.now();
        if (remainingMs <= 0) throw new Error(`it did not come: ${story.join(', ')}; ${retries.join()}`);
        await changes.next(remainingMs);
      }
    }
  }

  async function way(): Promise<Way> {
    const opened = await wayTo(world.target.baseUrl);
    ending.push(() => opened.proxy.stop());
    return opened;
  }

  /** A tenant of the test's own, with these widgets. */
  async function tenantWith(...names: string[]): Promise<{ name: string; widgets: string }> {
    const tenant = await createTenant(world);
    for (const name of names) await world.admin.post(tenant.widgets, { metadata: { name } });
    return tenant;
  }

  test('has all objects once it is synced, over many pages, and follows', async () => {
    const { name, widgets } = await tenantWith('one', 'two', 'three', 'four', 'five');
    const { cache, story, until } = await inform({ tenants: [name], grant: EVERYONE, pageSize: 2 });
    await cache.synced;
    expect(cache.list().map(({ metadata }) => metadata.name)).toHaveLength(5);
    expect(cache.get('three', name)?.metadata.namespace).toBe(name);
    expect([cache.get('three'), cache.get('six', name)]).toEqual([undefined, undefined]);
    await world.admin.patch(`${widgets}/one`, { spec: { size: 3 } });
    await world.admin.delete(`${widgets}/two`);
    await world.admin.post(widgets, { metadata: { name: 'six' } });
    await until(() => story.includes('+ six'));
    expect(story.slice(5)).toEqual(['~ one', '- two', '+ six']);
    expect(cache.get('one', name)?.spec.size).toBe(3);
    expect(cache.list(name)).toHaveLength(5);
  });

  test('keeps several tenants, each by itself, and everything that the token sees', async () => {
    const [first, second] = [await tenantWith('same'), await tenantWith('same')];
    const both = await inform({ tenants: [first.name, second.name], grant: EVERYONE });
    const all = await inform({ all: true, grant: { roles: ['viewer'], tenants: [first.name, second.name] } });
    await Promise.all([both.cache.synced, all.cache.synced]);
    for (const { cache } of [both, all]) {
      expect(cache.get('same', first.name)?.metadata.uid).not.toBe(cache.get('same', second.name)?.metadata.uid);
      expect(cache.list(second.name)).toHaveLength(1);
    }
  });

  test('with a selector tells of objects that leave it and come back', async () => {
    const { cache, story, until } = await inform({ labelSelector: 'team=shop' });
    await cache.synced;
    await createWidget(world, { labels: { team: 'other' } });
    const { metadata } = await createWidget(world, { labels: { team: 'shop' } });
    const patch = (team: string): Promise<unknown> =>
      world.editor.patch(world.widget(metadata.name), { metadata: { labels: { team } } });
    await patch('other');
    await patch('shop');
    await until(() => story.length === 3);
    expect(story).toEqual([`+ ${metadata.name}`, `- ${metadata.name}`, `+ ${metadata.name}`]);
  });

  test('is exact again behind a connection that was cut, without a second list', async () => {
    const { name, widgets } = await tenantWith('stays', 'goes');
    const { url, proxy } = await way();
    const { cache, story, retries, until } = await inform({ url, tenants: [name], grant: EVERYONE });
    await cache.synced;
    await proxy.refuse();
    await world.admin.delete(`${widgets}/goes`);
    await world.admin.post(widgets, { metadata: { name: 'comes' } });
    await until(() => retries.length > 1);
    await proxy.resume();
    await until(() => story.includes('+ comes'));
    expect(story.slice(2)).toEqual(['- goes', '+ comes']);
  });

  test('lists again when its cursor has expired, and tells of what vanished while it was away', async () => {
    const { name, widgets } = await tenantWith('stays', 'changes', 'goes', 'is-replaced');
    const { url, proxy } = await way();
    const { cache, story, retries, until } = await inform({ url, tenants: [name], grant: EVERYONE });
    await cache.synced;
    const { uid } = cache.get('is-replaced', name)?.metadata ?? {};
    await proxy.refuse();
    await world.admin.patch(`${widgets}/changes`, { spec: { size: 1 } });
    for (const gone of ['goes', 'is-replaced']) await world.admin.delete(`${widgets}/${gone}`);
    for (const made of ['is-replaced', 'comes']) await world.admin.post(widgets, { metadata: { name: made } });
    // A list waits until all of it is published.
    await world.admin.get(widgets);
    await (await open()).removeHistory(name, 8);
    await proxy.resume();
    await until(() => story.length === 9);
    expect(story.slice(4).toSorted()).toEqual(['+ comes', '+ is-replaced', '? goes', '? is-replaced', '~ changes']);
    expect(retries.filter((why) => why instanceof Expired)).toHaveLength(1);
    expect(cache.get('is-replaced', name)?.metadata.uid).not.toBe(uid);
    expect(
      cache
        .list(name)
        .map(({ metadata }) => metadata.name)
        .toSorted(),
    ).toEqual(['changes', 'comes', 'is-replaced', 'stays']);
  });

  test('lists again when the key of its cursor was retired, and tells nothing twice', async () => {
    const { name, widgets } = await tenantWith('one', 'two');
    const { cache, story, retries, until } = await inform({ tenants: [name], grant: EVERYONE });
    await cache.synced;
    await (await open()).retireCursorKeys();
    await until(() => retries.some((why) => why instanceof CursorKeyRetired));
    await world.admin.post(widgets, { metadata: { name: 'three' } });
    await until(() => story.includes('+ three'));
    expect(story.toSorted()).toEqual(['+ one', '+ three', '+ two']);
  });

  test('waits for a server that is away when it begins', async () => {
    const { url, proxy } = await way();
    await proxy.refuse();
    const { cache, retries, until } = await inform({ url });
    await until(() => retries.length > 1);
    await proxy.resume();
    await cache.synced;
  });

  test('ends with its tenant, having told of every deletion', async () => {
    const { name, widgets } = await tenantWith('one');
    const { cache, story } = await inform({ tenants: [name], grant: EVERYONE });
    await cache.synced;
    await world.admin.delete(`${widgets}/one`);
    await removeTenant(world, name);
    await cache.ended;
    expect(story).toEqual(['+ one', '- one']);
  });

  test('ends by its signal, and keeps what it has', async () => {
    const aborter = new AbortController();
    const { name } = await createWidget(world).then(({ metadata }) => metadata);
    const { cache } = await inform({ signal: aborter.signal });
    await cache.synced;
    aborter.abort();
    await cache.ended;
    expect(cache.get(name, world.tenant)?.metadata.name).toBe(name);
    const early = await inform({ signal: aborter.signal });
    await expect(early.cache.synced).rejects.toThrow('ended before it had all objects');
  });

  test('ends with what the server refuses for good, and with what a handler throws', async () => {
    const refused = await inform({ labelSelector: '===' });
    await expect(refused.cache.synced).rejects.toBeInstanceOf(BadRequest);
    await expect(refused.cache.ended).rejects.toBeInstanceOf(BadRequest);
    await createWidget(world, { name: uniqueName('w') });
    const thrown = await inform({
      onAdd() {
        throw new Error('no more');
      },
    });
    await expect(thrown.cache.ended).rejects.toThrow('no more');
  });
}
