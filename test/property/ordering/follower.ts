/** A watcher over HTTP that loses its connection again and again, and resumes with what it has processed. */

import { isPassing, openSse, type SseClient, type SseEvent, SseRefused } from '#test/support/sse-client.ts';
import type { Random } from '#test/support/random.ts';
import type { ReceivedEvent, Run } from '#test/property/ordering-checker.ts';

export interface FollowerOptions {
  readonly name: string;
  /** Each connection goes to one of them. */
  readonly servers: readonly FollowedServer[];
  /** All that the token sees; `named` puts them into the address. */
  readonly tenants: '*' | readonly string[];
  readonly named?: boolean;
  readonly from: 'earliest' | 'initial' | FollowedList;
  readonly random: Random;
  /** How long it stays connected. */
  readonly stayMs: readonly [least: number, most: number];
}

export interface FollowedServer {
  readonly baseUrl: string;
  readonly token: string;
}

/** A list that was read, to be followed from its cursor. */
export interface FollowedList {
  /** Version by uid. */
  readonly objects: ReadonlyMap<string, bigint>;
  readonly cursor: string;
}

export interface Follower {
  readonly connections: number;
  /** Whether it has received up to these numbers, by tenant. */
  hasReached(heads: ReadonlyMap<string, bigint>): boolean;
  /** What it received so far. */
  run(): Run;
  /** Resolves with how its stream was ended or refused, if that was in a way that no client should meet. */
  stop(): Promise<string | undefined>;
}

const EVENT_TYPES: readonly string[] = ['ADDED', 'MODIFIED', 'DELETED'];
const RETRY_MS = 50;

/** Begins at once. */
export function follow(options: FollowerOptions): Follower {
  const { name, tenants, from, random } = options;
  let events: ReceivedEvent[] = [];
  const listed = new Map(typeof from === 'object' ? from.objects : []);
  let reached = new Map<string, bigint>();
  let lastEventId = typeof from === 'object' ? from.cursor : '';
  /** How many events are processed for good: those behind have no id yet, and come again at a resume. */
  let kept = 0;
  let isStarting = from === 'initial';
  let connections = 0;
  let client: SseClient | undefined;
  let unexpected: string | undefined;
  const stopping = new AbortController();
  const ended = run();

  return {
    get connections() {
      return connections;
    },
    hasReached: (heads) =>
      !isStarting && [...heads].every(([tenant, seq]) => (reached.get(tenant) ?? 0n) >= seq || !watches(tenant)),
    run: () => ({ name, tenants, start: from === 'earliest' ? 'origin' : listed, events: events.slice() }),
    async stop() {
      stopping.abort();
      await client?.close();
      await ended;
      return unexpected && `${name}: ${unexpected}`;
    },
  };

  async function run(): Promise<void> {
    while (!stopping.signal.aborted && unexpected === undefined) {
      forgetWhatComesAgain();
      try {
        const { baseUrl, token } = random.pick(options.servers);
        client = await openSse(`${baseUrl}${path()}`, { token, lastEventId, keep: false, onEvent: take });
        connections += 1;
        await Promise.race([client.ended, untilItLeaves()]);
        if (client.isEnded) await delay(RETRY_MS);
        await client.close();
      } catch (error) {
        if (error instanceof SseRefused && error.status < 500) unexpected = `refused with ${error.message}`;
        await delay(RETRY_MS);
      }
    }
  }

  function forgetWhatComesAgain(): void {
    if (isStarting) listed.clear();
    if (events.length === kept) return;
    events = events.slice(0, kept);
    reached = new Map(events.map((event) => [event.tenant, event.seq]));
  }

  function path(): string {
    const parameters = new URLSearchParams();
    if (options.named && tenants !== '*') parameters.set('tenants', tenants.join(','));
    if (from === 'earliest' && lastEventId === '') parameters.set('from', 'earliest');
    if (isStarting) parameters.set('initial', 'true');
    return `/watch/v1/events?${parameters.toString()}`;
  }

  function take({ event, id, data }: SseEvent): void {
    if (event === 'ERROR' && !isPassing(data.code)) unexpected = `ended with ${JSON.stringify(data)}`;
    if (EVENT_TYPES.includes(event) && isStarting) listed.set(data.uid, BigInt(data.resourceversion));
    else if (EVENT_TYPES.includes(event)) {
      events.push(received(event as ReceivedEvent['type'], data));
      reached.set(data.tenant, BigInt(data.seq));
    }
    if (event === 'BOOKMARK' && data.reason === 'InitialEventsEnd') isStarting = false;
    if (id !== undefined && !isStarting) {
      lastEventId = id;
      kept = events.length;
    }
  }

  function watches(tenant: string): boolean {
    return tenants === '*' || tenants.includes(tenant);
  }

  async function untilItLeaves(): Promise<void> {
    await delay(random.int(...options.stayMs));
  }

  async function delay(milliseconds: number): Promise<void> {
    if (stopping.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, milliseconds);
      stopping.signal.addEventListener('abort', done, { once: true });
      function done(): void {
        clearTimeout(timer);
        stopping.signal.removeEventListener('abort', done);
        resolve();
      }
    });
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire
function received(type: ReceivedEvent['type'], data: any): ReceivedEvent {
  return {
    tenant: data.tenant,
    seq: BigInt(data.seq),
    id: data.id,
    uid: data.uid,
    type,
    resourceVersion: BigInt(data.resourceversion),
  };
}
