/**
 * Random writes, under cuts, outages, kills, lost history and retired keys: an informer tells a story in which each
 * event fits those before it, and at its end its cache is what a list says.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareVersions, informer, type PlumblineObject } from 'plumbline/client';
import { clientWith } from '#test/http/client.ts';
import { wayTo, type Way } from '#test/http/client/cutting.ts';
import { type OwnServer, startOwnServer } from '#test/support/own-server.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { type Random, seededRandom, testSeed } from '#test/support/random.ts';

const TENANTS = ['red', 'green'];
const NAMES = Array.from({ length: 12 }, (_, index) => `w${index}`);
const TEAMS = ['shop', 'other'];
const TROUBLES = 40;
const SELECTORS = [undefined, 'team=shop'];
const WIDGET = { group: 'example.dev', version: 'v1', kind: 'Widget', plural: 'widgets' } as const;
const seed = testSeed();

let server: OwnServer;
let way: Way;
let token: string;

beforeAll(async () => {
  server = await startOwnServer();
  await createTenants(server.sql, TENANTS);
  way = await wayTo(server.baseUrl);
  token = await server.token({ roles: ['viewer'], tenants: TENANTS });
});

afterAll(async () => {
  await way.proxy.stop();
  await server.stop();
});

interface Follower {
  readonly selector: string | undefined;
  /** What handlers have been told, by uid. */
  readonly told: ReadonlyMap<string, PlumblineObject>;
  /** What does not fit. */
  readonly problems: readonly string[];
  readonly cached: () => PlumblineObject[];
  readonly relists: () => number;
  readonly ended: Promise<void>;
}

function follow(selector: string | undefined, signal: AbortSignal): Follower {
  const told = new Map<string, PlumblineObject>();
  const newest = new Map<string, string>();
  const problems: string[] = [];
  let relists = 0;
  const cache = informer({
    url: way.url,
    token,
    kind: WIDGET,
    tenants: TENANTS,
    ...(selector !== undefined && { labelSelector: selector }),
    // What is deleted while a list is read is told of by both.
    pageSize: 1,
    relistSpreadMs: 10,
    retry: { minMs: 5, maxMs: 40, steadyMs: 0 },
    onAdd(object) {
      const { uid } = object.metadata;
      if (told.has(uid)) problems.push(`${uid} was added twice`);
      // Only a selector lets an object come back.
      if (selector === undefined && newest.has(uid)) problems.push(`${uid} rose from the dead`);
      take(object);
    },
    onUpdate(object, before) {
      const { uid, resourceVersion } = object.metadata;
      if (told.get(uid) !== before) problems.push(`${uid} was not what the update says that it was`);
      if (compareVersions(resourceVersion, before.metadata.resourceVersion) <= 0) problems.push(`${uid} did not move`);
      take(object);
    },
    onDelete({ metadata: { uid } }) {
      if (!told.delete(uid)) problems.push(`${uid} was deleted without being there`);
    },
    onRetry(why) {
      if (why.name === 'Expired' || why.name === 'CursorKeyRetired') relists += 1;
    },
    signal,
  });
  return { selector, told, problems, cached: () => cache.list(), relists: () => relists, ended: cache.ended };

  function take(object: PlumblineObject): void {
    const { uid, resourceVersion } = object.metadata;
    const last = newest.get(uid);
    if (last !== undefined && compareVersions(resourceVersion, last) < 0) problems.push(`${uid} went back`);
    newest.set(uid, resourceVersion);
    told.set(uid, object);
  }
}

describe(`writes under trouble (PLUMBLINE_TEST_SEED=${seed})`, () => {
  test('leave the cache as a list is, by events that fit one another', async () => {
    const random = seededRandom(seed);
    const lifetime = new AbortController();
    const writing = new AbortController();
    const followers = SELECTORS.map((selector) => follow(selector, lifetime.signal));
    const written = write(random.fork(), writing.signal);
    for (let count = 0; count < TROUBLES; count += 1) await makeTrouble(random);
    // Where they come back slowly, a trouble may have met none of them: the last one meets who follows.
    await expect.poll(() => followers.every(({ told }) => told.size > 0), { timeout: 30_000 }).toBe(true);
    await server.retireCursorKeys();
    writing.abort();
    const writes = await written;
    const viewer = clientWith(server.baseUrl, `Bearer ${token}`);
    for (const { selector, told, problems, cached } of followers) {
      const query = selector === undefined ? '' : `?labelSelector=${selector}`;
      const lists = await Promise.all(
        TENANTS.map((name) => viewer.get(`/apis/example.dev/v1/namespaces/${name}/widgets${query}`)),
      );
      const listed = lists.flatMap(({ body }) => body.items as PlumblineObject[]);
      await expect.poll(() => byUid(cached()), { timeout: 30_000 }).toEqual(byUid(listed));
      expect(byUid([...told.values()])).toEqual(byUid(listed));
      expect(problems).toEqual([]);
    }
    // One alone can be where none of it concerns it.
    expect(followers.reduce((sum, { relists }) => sum + relists(), 0)).toBeGreaterThan(0);
    expect(writes).toBeGreaterThan(TROUBLES);
    lifetime.abort();
    await Promise.all(followers.map(({ ended }) => ended));
  }, 180_000);
});

async function makeTrouble(random: Random): Promise<void> {
  const kind = random.next();
  if (kind < 0.4) {
    way.proxy.cut();
    await turn(random.int(1, 100));
  } else if (kind < 0.6) {
    await way.proxy.refuse();
    await turn(random.int(1, 200));
    await way.proxy.resume();
  } else if (kind < 0.8) {
    await loseHistory(random);
  } else if (kind < 0.9) await server.restart();
  else await server.retireCursorKeys();
}

/** While nobody can watch, all that was published goes. */
async function loseHistory(random: Random): Promise<void> {
  await way.proxy.refuse();
  await turn(random.int(50, 300));
  const tenant = random.pick(TENANTS);
  const [head] = await server.sql<{ last: string | null }[]>`select max(e.seq)::text as last from plumbline.event_log e
    join plumbline.stream s on e.stream = s.id where s.tenant = ${tenant}`;
  if (head?.last) await server.removeHistory(tenant, Number(head.last));
  await way.proxy.resume();
}

/** One after the other, as fast as the database takes them. @returns how many. */
async function write(random: Random, signal: AbortSignal): Promise<number> {
  const { sql } = server;
  let count = 0;
  for (; !signal.aborted; count += 1) {
    const [tenant, name, team, size] = [
      random.pick(TENANTS),
      random.pick(NAMES),
      random.pick(TEAMS),
      random.int(0, 1_000),
    ];
    if (random.chance(0.3)) await sql`delete from plumbline.resource where tenant = ${tenant} and name = ${name}`;
    else {
      await sql`insert into plumbline.resource (tenant, api_group, kind, name, labels, spec)
        values (${tenant}, 'example.dev', 'Widget', ${name}, ${sql.json({ team })}, ${sql.json({ size })})
        on conflict (tenant, api_group, kind, name) do update set labels = excluded.labels, spec = excluded.spec`;
    }
    await turn(random.int(0, 10));
  }
  return count;
}

/** Lets everybody else have a turn, of this length: what happens in it is the chance that is tested. */
async function turn(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function byUid(objects: readonly PlumblineObject[]): PlumblineObject[] {
  return objects.toSorted((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1));
}
