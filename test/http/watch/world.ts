/** What each part of the watch suite starts from: a world of the resource API, and watches that end with their test. */

import { type afterAll, afterEach, expect } from 'vitest';

import { createWidget, TENANTS, uniqueName, type World } from '#test/http/resource-api/world.ts';
import type { Grant } from '#test/http/target.ts';
import { openSse, type SseClient, type SseEvent, SseRefused } from '#test/support/sse-client.ts';

export interface WatchOptions {
  /** @default a viewer of the world's tenant */
  readonly grant?: Grant;
  readonly lastEventId?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Watches {
  /** Opens a watch and passes its READY. */
  open(query?: Readonly<Record<string, string>>, options?: WatchOptions): Promise<SseClient>;
  /** Opens a watch that is to be refused. @throws when it is not. */
  refused(query?: Readonly<Record<string, string>>, options?: WatchOptions): Promise<SseRefused>;
  /** Opens a watch that is answered 200 and then refused, with an id that makes clients forget theirs. Gives the ERROR. */
  refusedInStream(query: Readonly<Record<string, string>>, options: WatchOptions): Promise<SseEvent>;
}

export const EVENTS = '/watch/v1/events';

/** Watches of the surrounding `describe`. Each ends with its test; those of tests that run at once, after all of them. */
export function useWatches(world: World, endAfter: typeof afterEach | typeof afterAll = afterEach): Watches {
  const opened: SseClient[] = [];
  endAfter(async () => {
    await Promise.all(opened.splice(0).map((client) => client.close()));
  });
  return { open, refused, refusedInStream };

  async function connect(query: Readonly<Record<string, string>>, options: WatchOptions): Promise<SseClient> {
    const { grant = viewerOf(world), lastEventId, headers } = options;
    const client = await openSse(watchUrl(world.target.baseUrl, query), {
      token: await world.target.token(grant),
      ...(lastEventId !== undefined && { lastEventId }),
      ...(headers && { headers }),
    });
    opened.push(client);
    return client;
  }

  async function open(query: Readonly<Record<string, string>> = {}, options: WatchOptions = {}): Promise<SseClient> {
    const client = await connect(query, options);
    expect((await client.next()).event).toBe('READY');
    return client;
  }

  async function refused(
    query: Readonly<Record<string, string>> = {},
    options: WatchOptions = {},
  ): Promise<SseRefused> {
    const client = await connect(query, options).catch((error: unknown) => error);
    if (client instanceof SseRefused) return client;
    throw new Error('the watch was not refused', { cause: client });
  }

  async function refusedInStream(query: Readonly<Record<string, string>>, options: WatchOptions): Promise<SseEvent> {
    const client = await connect(query, options);
    const error = await client.next();
    expect([error.event, error.id]).toEqual(['ERROR', '']);
    expect(await client.ended).toBeUndefined();
    expect([client.events.length, client.lastEventId]).toEqual([1, '']);
    return error;
  }
}

export function viewerOf(world: World): Grant {
  return { roles: ['viewer'], tenants: [world.tenant] };
}

export const EVERYONE: Grant = { roles: ['viewer'], tenants: '*' };

export function watchUrl(baseUrl: string, query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `${baseUrl}${EVENTS}${text === '' ? '' : `?${text}`}`;
}

/** What READY granted. */
export function readyOf(client: SseClient): SseEvent {
  const ready = client.events[0];
  if (ready?.event !== 'READY') throw new Error(`the stream began with ${JSON.stringify(ready)}`);
  return ready;
}

/** The events that are changes of objects. */
export function changesOf(client: SseClient): readonly SseEvent[] {
  return client.events.filter(({ event }) => event === 'ADDED' || event === 'MODIFIED' || event === 'DELETED');
}

/** `ADDED blue`, in order. */
export function storyOf(client: SseClient): string[] {
  return changesOf(client).map(({ event, data }) => `${event} ${data.data.metadata.name}`);
}

/**
 * Writes an object and waits until a watch delivers it: then everything that was written before has been delivered or
 * never will be. Gives its event.
 */
export async function passMark(world: World, client: SseClient, metadata: object = {}): Promise<SseEvent> {
  const mark = await createWidget(world, { ...metadata, name: uniqueName('mark') });
  return client.waitFor(({ data }) => data.uid === mark.metadata.uid);
}

/** Waits until what was written is published: a watch that begins now does not see it. A list waits for that. */
export async function settle(world: World): Promise<void> {
  const answer = await world.admin.get(`/apis/example.dev/v1/widgets?limit=1`);
  expect(answer.headers.get('warning')).toBeNull();
}

/** Like `storyOf`, without the marks. */
export function storyWithoutMarks(client: SseClient): string[] {
  return storyOf(client).filter((line) => !line.includes(' mark-'));
}

/** A second tenant, with the path of its widgets. */
export async function createTenant(world: World, name: string = uniqueName('t')): Promise<OtherTenant> {
  const answer = await world.admin.post(TENANTS, { metadata: { name } });
  expect(answer.status, answer.text).toBe(201);
  return { name, widgets: `/apis/example.dev/v1/namespaces/${name}/widgets` };
}

export interface OtherTenant {
  readonly name: string;
  readonly widgets: string;
}

/** The data of an ERROR event or the body of a refusal: a `Status` through and through. */
// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
export function expectFailure(body: any, code: number, reason: string, words?: string | RegExp): void {
  expect(body).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason });
  if (words !== undefined) expect(body.message).toMatch(words);
}
