/** Watch: `GET /watch/v1/events`, committed changes as server-sent events, in order and with resume. */

import type { Context, Hono, MiddlewareHandler } from 'hono';
import { createHttpApp, type HttpEnv } from '#http/app.ts';
import { may } from '#http/authorize.ts';
import { methods } from '#http/methods.ts';
import type { Caller } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { SseTransport } from '#core/ports/sse.ts';
import { SSE_OPENING } from '#core/sse.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import type { Feed } from '#functions/watch/feed.ts';
import { errorFrame, FrameBytes, readyFrame } from '#functions/watch/frames.ts';
import type { Hub } from '#functions/watch/hub.ts';
import { streamInitialState } from '#functions/watch/initial-state.ts';
import { findStart, type StartDeps } from '#functions/watch/start.ts';
import { parseWatchRequest, type WatchRequest } from '#functions/watch/watch-request.ts';
import { Watcher } from '#functions/watch/watcher.ts';

export interface WatchDeps extends StartDeps {
  readonly hub: Hub;
  readonly kinds: KindRegistry;
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
    const { audience, expiresAtMs } = c.get('caller');
    const feed = await deps.hub.feed(audience, request.tenants);
    const { vector, snapshot } = await findStart(deps, { audience, request, seal: feed.seal });
    try {
      // All that can be refused, before the head is written.
      const cursor = feed.seal(vector);
      feed.assertRunning();
      const { watcher, answer } = open(c, feed, request);
      deps.hub.register(watcher, expiresAtMs);
      watcher.write(SSE_OPENING + readyFrame({ mode: modeOf(request), tenants: grantedTenants(feed), cursor }));
      if (snapshot) void streamInitialState({ snapshot, watcher, feed, selection: request.selection });
      else watcher.begin(vector);
      return answer;
    } catch (error) {
      await snapshot?.close();
      throw error;
    }
  }

  function open(
    c: Context<HttpEnv>,
    feed: Feed,
    { selection, tenantsAreNamed }: WatchRequest,
  ): { watcher: Watcher; answer: Response } {
    const { sink, answer } = deps.transport.open(c.env as never, headersOf(c), {
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

  function refuseInStream(c: Context<HttpEnv>, error: unknown): Response {
    const { sink, answer } = deps.transport.open(c.env as never, headersOf(c), {
      onDrain: () => undefined,
      onClose: () => undefined,
    });
    sink.write(new FrameBytes(SSE_OPENING + errorFrame(toStatusError(error), { forget: true })));
    sink.end();
    return answer;
  }
}

/** A stream writes its head itself: what middleware would put on an answer is put on here. */
function headersOf(c: Context<HttpEnv>): Record<string, string> {
  return { ...HEADERS, 'X-Request-Id': c.get('requestId') };
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
  if (may(caller, 'watch', { scope: 'Namespaced', tenant: undefined })) return;
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
