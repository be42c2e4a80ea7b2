/** A watcher as clients should be: it stays connected, and when the stream ends it resumes with its last event id. */

import { isPassing, openSse, type SseClient, type SseEvent, SseRefused } from '#test/support/sse-client.ts';
import { createChanges } from '#test/support/changes.ts';

export interface ReceivedEvent {
  readonly type: string;
  readonly tenant: string;
  readonly id: string;
  readonly uid: string;
  readonly seq: bigint;
  readonly resourceVersion: bigint;
  /** When it came, by performance.now(). */
  readonly atMs: number;
  /** When the change was captured, milliseconds since the epoch. */
  readonly timeMs: number;
}

export interface ResumingWatcherOptions {
  /** Asked at each connect: a server that is started again may be elsewhere. */
  readonly baseUrl: () => string;
  readonly token: string;
  /** Without it, all that the token sees. */
  readonly tenants?: string;
  /** @default 'now' */
  readonly from?: string;
}

export interface ResumingWatcher {
  readonly events: readonly ReceivedEvent[];
  readonly connections: number;
  readonly bookmarks: number;
  readonly isConnected: boolean;
  readonly lastEventId: string;
  /** What no client should meet: a refused cursor, a stream that ends with an error of ours. */
  readonly failures: readonly string[];
  /** The first READY has come. */
  readonly ready: Promise<void>;
  /** Waits for an event, also one that has come already. @throws at the deadline. */
  until(predicate: (event: ReceivedEvent) => boolean, deadlineMs?: number): Promise<ReceivedEvent>;
  stop(): Promise<void>;
}

const RETRY_MS = 25;

/** Begins at once. */
export function startResumingWatcher(options: ResumingWatcherOptions): ResumingWatcher {
  const events: ReceivedEvent[] = [];
  const failures: string[] = [];
  let lastEventId = '';
  let connections = 0;
  let bookmarks = 0;
  let client: SseClient | undefined;
  let isStopped = false;
  const changes = createChanges();
  const { promise: ready, resolve: markReady } = Promise.withResolvers<void>();
  const ended = run();

  return {
    events,
    failures,
    ready,
    get connections() {
      return connections;
    },
    get bookmarks() {
      return bookmarks;
    },
    get isConnected() {
      return client !== undefined && !client.isEnded;
    },
    get lastEventId() {
      return lastEventId;
    },
    until,
    async stop() {
      isStopped = true;
      await client?.close();
      await ended;
    },
  };

  async function run(): Promise<void> {
    while (!isStopped) {
      try {
        client = await openSse(address(), { token: options.token, lastEventId, keep: false, onEvent: take });
        connections += 1;
        await client.ended;
      } catch (error) {
        if (error instanceof SseRefused && !isPassing(error.status)) {
          failures.push(`refused: ${error.message}`);
        }
      }
      if (!isStopped) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  function address(): string {
    const query = new URLSearchParams({
      from: options.from ?? 'now',
      ...(options.tenants !== undefined && { tenants: options.tenants }),
    });
    return `${options.baseUrl()}/watch/v1/events?${query.toString()}`;
  }

  function take({ event, id, data }: SseEvent): void {
    if (id !== undefined) lastEventId = id;
    if (event === 'READY') markReady();
    else if (event === 'BOOKMARK') bookmarks += 1;
    else if (event === 'ERROR' && !isPassing(data.code)) failures.push(`ended: ${JSON.stringify(data)}`);
    else if (event !== 'ERROR') events.push(received(event, data));
    changes.tell();
  }

  async function until(predicate: (event: ReceivedEvent) => boolean, deadlineMs = 30_000): Promise<ReceivedEvent> {
    const deadline = performance.now() + deadlineMs;
    for (let index = 0; ; index++) {
      while (index >= events.length) {
        const remainingMs = deadline - performance.now();
        if (remainingMs <= 0) {
          const state = `connected: ${client?.isEnded === false}, connections: ${connections}, events: ${events.length}`;
          throw new Error(`the event did not come within ${deadlineMs} ms; ${state}; ${failures.join('; ')}`);
        }
        await changes.next(remainingMs);
      }
      const event = events[index];
      if (event && predicate(event)) return event;
    }
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire
function received(type: string, data: any): ReceivedEvent {
  return {
    type,
    tenant: data.tenant,
    id: data.id,
    uid: data.uid,
    seq: BigInt(data.seq),
    resourceVersion: BigInt(data.resourceversion),
    atMs: performance.now(),
    timeMs: Date.parse(data.time),
  };
}
