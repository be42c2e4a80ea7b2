/** The watchers of a scenario: of one tenant, of some, of all; from the beginning, from a list, from the initial state. */

import { clientOf } from '#test/http/client.ts';
import type { Grant, Target } from '#test/http/target.ts';
import type { Random } from '#test/support/random.ts';
import { isPassing } from '#test/support/sse-client.ts';
import { type Follower, follow, type FollowedList, type FollowerOptions } from '#test/property/ordering/follower.ts';
import type { Run } from '#test/property/ordering-checker.ts';

export interface FollowersOptions {
  /** Of one database. */
  readonly servers: readonly Target[];
  /** Whether a watcher resumes at any of them; else each stays where it began, and they take turns. */
  readonly roam: boolean;
  readonly tenants: readonly string[];
  readonly random: Random;
}

export interface Followers {
  readonly connections: number;
  /** Those that want everything from the first event on. */
  startEarly(): Promise<void>;
  /** One that comes while much is going on, and wants the state and what follows. */
  startLate(): Promise<void>;
  /** Resolves when all have received up to these numbers, by tenant, or the time is over. */
  untilReached(heads: ReadonlyMap<string, bigint>, patienceMs: number): Promise<void>;
  runs(): readonly Run[];
  /** Resolves with what they met that no client should meet. */
  stop(): Promise<readonly string[]>;
}

const WIDGETS = '/apis/example.dev/v1/widgets?limit=1000';
/** A list of their objects fits in a page, and a cursor of their streams rides on every event. */
const SOME = 12;
const LIST_ATTEMPTS = 40;

export function createFollowers({ servers, roam, tenants, random }: FollowersOptions): Followers {
  const followers: Follower[] = [];
  let late = 0;
  const some = tenants.slice(0, SOME);
  const one = tenants.slice(0, 1);

  return {
    get connections() {
      return followers.reduce((sum, follower) => sum + follower.connections, 0);
    },
    async startEarly() {
      await start({ name: 'one tenant', tenants: one, from: 'earliest', stayMs: [50, 1500] });
      await start({ name: 'the same, calmer', tenants: one, from: 'earliest', stayMs: [1000, 5000] });
      await start({
        name: 'five, named',
        tenants: tenants.slice(0, 5),
        named: true,
        from: 'earliest',
        stayMs: [100, 2000],
      });
      await start({ name: 'twelve', tenants: some, from: 'earliest', stayMs: [200, 3000] });
      // Its cursor comes with bookmarks only, every 12 to 15 s.
      await start({ name: 'all', tenants: '*', from: 'earliest', stayMs: [16_000, 20_000] });
    },
    async startLate() {
      const seen = [one, some, '*' as const][late % 3] ?? one;
      late += 1;
      const from = seen === '*' || random.chance(0.4) ? 'initial' : await list(seen);
      const name = `late ${late}, ${seen === '*' ? 'all' : seen.length} from ${from === 'initial' ? from : 'list'}`;
      await start({ name, tenants: seen, from, stayMs: seen === '*' ? [16_000, 20_000] : [50, 2500] });
    },
    async untilReached(heads, patienceMs) {
      const deadline = performance.now() + patienceMs;
      while (followers.some((follower) => !follower.hasReached(heads)) && performance.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    runs: () => followers.map((follower) => follower.run()),
    async stop() {
      const unexpected = await Promise.all(followers.map((follower) => follower.stop()));
      return unexpected.filter((each) => each !== undefined);
    },
  };

  async function start(options: Omit<FollowerOptions, 'servers' | 'random'>): Promise<void> {
    const grant: Grant = { roles: ['viewer'], tenants: options.named ? '*' : options.tenants };
    const chosen = roam ? servers : [servers[followers.length % servers.length]!];
    const followed = chosen.map(async (server) => ({ baseUrl: server.baseUrl, token: await server.token(grant) }));
    followers.push(follow({ ...options, servers: await Promise.all(followed), random: random.fork() }));
  }

  /** One that tells where to watch from: while the log is behind, lists do not. */
  async function list(seen: readonly string[]): Promise<FollowedList> {
    const client = await clientOf(random.pick(servers), { roles: ['viewer'], tenants: seen });
    for (let attempt = 0; attempt < LIST_ATTEMPTS; attempt += 1) {
      const { status, body, text } = await client.get(WIDGETS);
      // Connections to the database are cut on purpose.
      if (isPassing(status)) continue;
      if (status !== 200 || body.metadata.continue)
        throw new Error(`the list is not one whole page: ${status} ${text.slice(0, 300)}`);
      if (body.metadata.cursor) return { cursor: body.metadata.cursor, objects: new Map(body.items.map(versionByUid)) };
    }
    throw new Error(`no list of ${seen.join(', ')} had a cursor, ${LIST_ATTEMPTS} times`);
  }
}

function versionByUid({ metadata }: { metadata: { uid: string; resourceVersion: string } }): [string, bigint] {
  return [metadata.uid, BigInt(metadata.resourceVersion)];
}
