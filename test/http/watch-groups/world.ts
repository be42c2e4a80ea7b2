/** What each part of the suite of watch groups starts from: a tenant, a group's owner, members that end with their test. */

import { afterEach, beforeAll, expect } from 'vitest';

import { type Answer, type Client, clientOf } from '#test/http/client.ts';
import { createWidget, uniqueName, useWorld, type World } from '#test/http/resource-api/world.ts';
import type { Grant, OpenTarget } from '#test/http/target.ts';
import { watchUrl } from '#test/http/watch/world.ts';
import { openSse, type SseClient, type SseEvent, SseRefused } from '#test/support/sse-client.ts';

export const ACKS = '/watch/v1/acks';

export interface GroupWorld extends World {
  /** Who owns the groups of this suite. */
  readonly owner: Grant;
  readonly member: Client;
  /** Opens a member's stream and passes its READY. */
  join(group: string, query?: Readonly<Record<string, string>>, grant?: Grant): Promise<SseClient>;
  /** Closes the group's only member, and waits until the server knows: what it sends before is an attempt at the dead. */
  leave(client: SseClient, group: string): Promise<void>;
  /** A stream that is to be refused. */
  refused(query: Readonly<Record<string, string>>, grant?: Grant): Promise<SseRefused>;
  ack(...ids: readonly (string | undefined)[]): Promise<string>;
  nack(id: string | undefined, delayMs?: number): Promise<string>;
  /** Writes an object so often that it has this many events; gives its uid. */
  write(name: string, events: number): Promise<string>;
}

export function useGroups(open: OpenTarget): GroupWorld {
  const base = useWorld(open);
  const world = {} as GroupWorld;
  const opened: SseClient[] = [];
  beforeAll(async () => {
    const owner: Grant = { roles: ['viewer'], tenants: [base.tenant], subject: uniqueName('owner') };
    const member = await clientOf(base.target, owner);
    Object.assign(world, base, { owner, member, join, leave, refused, ack, nack, write });
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((client) => client.close()));
  });
  return world;

  async function connect(query: Readonly<Record<string, string>>, grant: Grant): Promise<SseClient> {
    const client = await openSse(watchUrl(world.target.baseUrl, query), { token: await world.target.token(grant) });
    opened.push(client);
    return client;
  }

  async function join(
    group: string,
    query: Readonly<Record<string, string>> = {},
    grant: Grant = world.owner,
  ): Promise<SseClient> {
    const client = await connect({ group, ...query }, grant);
    expect((await client.next()).event).toBe('READY');
    return client;
  }

  async function leave(client: SseClient, group: string): Promise<void> {
    await client.close();
    const members = async (): Promise<unknown> => (await world.member.get(`/watch/v1/groups/${group}`)).body.members;
    await expect.poll(members, { timeout: 20_000 }).toEqual([]);
  }

  async function refused(query: Readonly<Record<string, string>>, grant: Grant = world.owner): Promise<SseRefused> {
    const client = await connect(query, grant).catch((error: unknown) => error);
    if (client instanceof SseRefused) return client;
    throw new Error('the member was not refused', { cause: client });
  }

  async function ack(...ids: readonly (string | undefined)[]): Promise<string> {
    return statusOf(await world.member.post(ACKS, { acks: ids }));
  }

  async function nack(id: string | undefined, delayMs: number = 0): Promise<string> {
    return statusOf(await world.member.post(ACKS, { nacks: [{ token: id, delayMs }] }));
  }

  async function write(name: string, events: number): Promise<string> {
    const { metadata } = await createWidget(world, { name });
    for (let size = 1; size < events; size += 1) {
      const answer = await world.editor.patch(world.widget(name), { spec: { size } });
      expect(answer.status, answer.text).toBe(200);
    }
    return metadata.uid;
  }
}

/** What became of the tokens: `Acked`, `Acked Duplicate`; of a refusal, its reason. */
export function statusOf({ body }: Answer): string {
  const results: readonly { status: string }[] | undefined = body.results;
  return results ? results.map(({ status }) => status).join(' ') : body.reason;
}

/** The events of an object: its sizes, in the order in which they came; with the attempt where it is not the first. */
export function deliveriesOf(client: SseClient, uid: string): string[] {
  return client.events
    .filter(({ data }) => data.uid === uid)
    .map(({ data }) => `${data.data.spec.size ?? 0}${data.attempt === 1 ? '' : ` again ${data.attempt}`}`);
}

export function isOf(uid: string, size?: number): (event: SseEvent) => boolean {
  return ({ data }) => data.uid === uid && (size === undefined || (data.data.spec.size ?? 0) === size);
}

export function upTo(count: number): string[] {
  return Array.from({ length: count }, (_, size) => String(size));
}
