/** Watch: `GET /watch/v1/events`, committed changes as server-sent events, in order and with resume. */

import type { Context, Hono, MiddlewareHandler } from 'hono';
import { createHttpApp, type HttpEnv } from '#http/app.ts';
import { methods } from '#http/methods.ts';
import type { Cursors, CursorVector } from '#core/cursor.ts';
import { ROLES, type Caller } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { ResourceStore } from '#core/ports/resources.ts';
import type { SseTransport } from '#core/ports/sse.ts';
import { SSE_OPENING } from '#core/sse.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import type { Feed } from '#functions/watch/feed.ts';
import { errorFrame, FrameBytes, readyFrame } from '#functions/watch/frames.ts';
import type { Hub } from '#functions/watch/hub.ts';
import { type InitialState, streamInitialState } from '#functions/watch/initial-state.ts';
import { earliestVector, headVector, resumeVector, type StartDeps } from '#functions/watch/start-vector.ts';
import { parseWatchRequest, tenantNotFound, type WatchRequest } from '#functions/watch/watch-request.ts';
import { Watcher } from '#functions/watch/watcher.ts';

export interface WatchDeps extends StartDeps {
  readonly hub: Hub;
  readonly store: ResourceStore;
  readonly kinds: KindRegistry;
  readonly cursors: Cursors;
  readonly authenticate: MiddlewareHandler<HttpEnv>;
  /** How this runtime sends events. `Env` is its `c.env`. */
  readonly transport: SseTransport<never, Response>;
  readonly logger: Logger;
}

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream',
  // no-transform: compression holds small events back.
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
};

export function createWatch(deps: WatchDeps): Hono<HttpEnv> {
  const app = createHttpApp(deps);
  app.use('/watch/*', deps.authenticate);
  // The headers of a stream that is not opened say nothing.
  app.all('/watch/v1/events', methods({ GET: watchEvents }, { head: false }));
  return app;

  async function watchEvents(c: Context<HttpEnv>): Promise<Response> {
    assertAccepted(c);
    assertMayWatch(c.get('caller'));
    const request = parseWatchRequest(c, deps.kinds);
    try {
      return await begin(c, request);
    } catch (error) {
      // Browsers give up for good on anything but 200, and would send the same id again and again.
      if (request.byLastEventId && isRefusedCursor(error)) return refuseInStream(c, error);
      throw error;
    }
  }

  async function begin(c: Context<HttpEnv>, request: WatchRequest): Promise<Response> {
    const caller = c.get('caller');
    const feed = await deps.hub.feed(caller.audience, request.tenants);
    await assertTenantsExist(request);
    // An initial watch begins where its snapshot is; the snapshot is taken last, since it holds a connection.
    const vector = request.start.at === 'initial' ? undefined : await startVector(caller, request, feed);
    const initial = vector ? undefined : await openInitialState(request);
    const start = vector ?? initial?.snapshot.head ?? new Map();

    const { watcher, answer } = open(c, feed, request);
    deps.hub.register(watcher, caller.expiresAtMs);
    watcher.write(
      SSE_OPENING + readyFrame({ mode: modeOf(request), tenants: grantedTenants(feed), cursor: feed.seal(start) }),
    );
    if (initial) void streamInitialState({ ...initial, watcher, feed, selection: request.selection });
    else watcher.begin(start);
    return answer;
  }

  function open(
    c: Context<HttpEnv>,
    feed: Feed,
    { selection, tenantsAreNamed }: WatchRequest,
  ): { watcher: Watcher; answer: Response } {
    const { sink, answer } = deps.transport.open(c.env as never, HEADERS, {
      onDrain: () => watcher.onDrain(),
      onClose: () => deps.hub.unregister(watcher),
    });
    const watcher = new Watcher({
      feed,
      log: deps.log,
      sink,
      selection,
      endsWithTenants: tenantsAreNamed,
    });
    return { watcher, answer };
  }

  async function startVector(caller: Caller, { start, tenants }: WatchRequest, feed: Feed): Promise<CursorVector> {
    if (start.at === 'earliest') return earliestVector(deps, tenants);
    if (start.at !== 'cursor') return headVector(deps, tenants);
    const cursor = deps.cursors.open(start.cursor, caller.audience, tenants);
    return resumeVector(deps, tenants, cursor, (vector) => feed.seal(vector));
  }

  async function openInitialState({
    tenants,
    selection,
  }: WatchRequest): Promise<Pick<InitialState, 'snapshot' | 'streams'>> {
    const streams = await deps.streams.list({ tenants });
    const ids = streams.map((stream) => stream.id);
    return { streams, snapshot: await deps.store.snapshot({ tenants }, ids, selection.kinds) };
  }

  async function assertTenantsExist({ tenants, tenantsAreNamed }: WatchRequest): Promise<void> {
    if (!tenantsAreNamed || tenants === '*') return;
    const existing = new Set((await deps.streams.list({ tenants })).map((stream) => stream.tenant));
    const missing = tenants.find((name) => !existing.has(name));
    if (missing !== undefined) throw tenantNotFound(missing);
  }

  function refuseInStream(c: Context<HttpEnv>, error: unknown): Response {
    const { sink, answer } = deps.transport.open(c.env as never, HEADERS, {
      onDrain: () => undefined,
      onClose: () => undefined,
    });
    sink.write(new FrameBytes(SSE_OPENING + errorFrame(toStatusError(error), { forget: true })));
    sink.end();
    return answer;
  }
}

function modeOf({ start }: WatchRequest): 'live' | 'resume' | 'initial' {
  if (start.at === 'now') return 'live';
  return start.at === 'initial' ? 'initial' : 'resume';
}

function grantedTenants(feed: Feed): '*' | readonly string[] {
  return feed.tenants === '*' ? '*' : feed.tenantNames.toSorted();
}

function isRefusedCursor(error: unknown): boolean {
  return error instanceof StatusError && (error.code === 400 || error.code === 410);
}

function assertMayWatch(caller: Caller): void {
  if (caller.roles.some((role) => ROLES.includes(role))) return;
  throw new StatusError('Forbidden', `${JSON.stringify(caller.subject)} has no role that may watch`);
}

function assertAccepted(c: Context<HttpEnv>): void {
  const accept = c.req.header('accept') ?? '';
  if (accept.trim() === '' || accept.split(',').some(acceptsEventStream)) return;
  throw new StatusError('NotAcceptable', 'a watch is answered as text/event-stream; accept it');
}

/** One media range of RFC 9110 section 12.5.1, with a weight above 0. */
function acceptsEventStream(range: string): boolean {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const isRefused = parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter));
  return !isRefused && ['text/event-stream', 'text/*', '*/*'].includes(type);
}
