/** Watch: `GET /watch/v1/events`, committed changes as server-sent events, in order and with resume. */

import type { Context, Hono, MiddlewareHandler } from 'hono';
import { createHttpApp, type HttpDeps, type HttpEnv } from '#http/app.ts';
import { may, MissingRight } from '#http/authorize.ts';
import { originHeaders } from '#http/cors.ts';
import { digestOf } from '#http/digest.ts';
import { methods } from '#http/methods.ts';
import type { AckTokens } from '#core/ack-token.ts';
import { type Caller, isOpenSet } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Snapshot } from '#core/ports/resources.ts';
import type { SseTransport } from '#core/ports/sse.ts';
import type { WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';
import type { WatchGroups } from '#core/ports/watch-groups.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import type { Feed } from '#functions/watch/feed/feed.ts';
import { errorFrame, FrameBytes, opening, readyFrame } from '#functions/watch/frames.ts';
import { routeGroupAdmin } from '#functions/watch/group-admin/routes.ts';
import { answerAcks } from '#functions/watch/groups/requests/answer-acks.ts';
import { joinGroup } from '#functions/watch/groups/requests/join-group.ts';
import type { Hub } from '#functions/watch/hub.ts';
import { streamInitialState } from '#functions/watch/start/initial-state.ts';
import type { Backlog } from '#functions/watch/backlog/catch-up.ts';
import { MissedBatches } from '#functions/watch/backlog/missed-batches.ts';
import { Pace } from '#functions/watch/pacing/pace.ts';
import { withSharedLists, withSharedRanges } from '#functions/watch/shared-questions.ts';
import { findStart, type StartDeps } from '#functions/watch/start/start.ts';
import { viewOf } from '#functions/watch/view.ts';
import { parseWatchRequest, type WatchRequest } from '#functions/watch/watch-request.ts';
import { Watcher } from '#functions/watch/watcher.ts';

export interface WatchDeps extends StartDeps, HttpDeps {
  readonly hub: Hub;
  readonly groups: WatchGroups & WatchGroupAdmin;
  readonly ackTokens: AckTokens;
  readonly onFencedAcks: (count: number) => void;
  readonly kinds: KindRegistry;
  readonly authenticate: MiddlewareHandler<HttpEnv>;
  /** How this runtime sends events. `Env` is its `c.env`. */
  readonly transport: SseTransport<never, Response>;
}

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream',
  // no-transform: compression holds small events back.
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
};

/** Of cursors, and of places for now. */
const REFUSED_CODES: ReadonlySet<number> = new Set([400, 410, 429, 504]);

export function createWatch(deps: WatchDeps): Hono<HttpEnv> {
  const backlog: Backlog = { log: deps.log, missed: new MissedBatches(), pace: new Pace() };
  const startDeps: StartDeps = { ...deps, log: withSharedRanges(deps.log), streams: withSharedLists(deps.streams) };
  const app = createHttpApp(deps);
  app.use('/watch/*', deps.authenticate);
  // The headers of a stream that is not opened say nothing.
  app.all('/watch/v1/events', methods({ GET: watchEvents }, { head: false }));
  app.all('/watch/v1/acks', methods({ POST: acknowledge }));
  app.use('/watch/v1/groups/*', (c, next) => {
    assertMayWatch(c.get('caller'));
    return next();
  });
  routeGroupAdmin(app, deps);
  return app;

  async function acknowledge(c: Context<HttpEnv>): Promise<Response> {
    assertMayWatch(c.get('caller'));
    return answerAcks(deps, c);
  }

  async function watchEvents(c: Context<HttpEnv>): Promise<Response> {
    assertAccepted(c);
    assertMayWatch(c.get('caller'));
    const request = parseWatchRequest(c, deps.kinds);
    if (request.group) return joinGroup({ ...deps, ...startDeps }, c, request, request.group, headersFor(c));
    try {
      return await begin(c, request);
    } catch (error) {
      await logRefusal(c, request, error);
      // Browsers give up for good on anything but 200, and would send the same id again and again.
      if (request.byLastEventId && isRefusedCursor(error)) return refuseInStream(c, error);
      throw error;
    }
  }

  /** By its digest an operator finds the cursor that a client complains of; the cursor itself is nobody else's. */
  async function logRefusal(c: Context<HttpEnv>, { start }: WatchRequest, error: unknown): Promise<void> {
    if (start.at !== 'cursor' || !(error instanceof StatusError)) return;
    const { reason } = error;
    const cursorDigest = await digestOf(start.cursor);
    deps.logger.info({ requestId: c.get('requestId'), reason, cursorDigest }, 'a cursor was not resumed from');
  }

  async function begin(c: Context<HttpEnv>, request: WatchRequest): Promise<Response> {
    const caller = c.get('caller');
    const { audience } = caller;
    const view = viewOf(caller, request.granted, request.tenantsAreNamed);
    const giveBack = deps.hub.takePlace(view);
    let snapshot: Snapshot | undefined;
    try {
      const feed = await deps.hub.feed(audience, request.tenants, request.granted);
      const start = await findStart(startDeps, { audience, request, seal: feed.seal });
      const { vector } = start;
      ({ snapshot } = start);
      // All that can be refused, before the head is written.
      const cursor = feed.seal(vector);
      feed.assertRunning();
      deps.hub.assertFilterAllowed(caller, request.selection.filter);
      const { watcher, answer } = open(c, feed, request);
      deps.hub.register(watcher, view, giveBack);
      watcher.write(opening() + readyFrame({ mode: modeOf(request), tenants: grantedTenants(feed), cursor }));
      if (snapshot) void streamInitialState({ snapshot, watcher, feed, selection: request.selection });
      else watcher.begin(vector);
      return answer;
    } catch (error) {
      giveBack();
      await snapshot?.close();
      throw error;
    }
  }

  function open(
    c: Context<HttpEnv>,
    feed: Feed,
    { selection, tenantsAreNamed }: WatchRequest,
  ): { watcher: Watcher; answer: Response } {
    const { sink, answer } = deps.transport.open(c.env as never, headersFor(c), {
      onDrain: () => watcher.onDrain(),
      onClose: () => deps.hub.unregister(watcher),
    });
    const watcher = new Watcher({
      feed,
      backlog,
      sink,
      selection,
      endsWithTenants: tenantsAreNamed,
    });
    return { watcher, answer };
  }

  function refuseInStream(c: Context<HttpEnv>, error: unknown): Response {
    const { sink, answer } = deps.transport.open(c.env as never, headersFor(c), {
      onDrain: () => undefined,
      onClose: () => undefined,
    });
    const status = toStatusError(error);
    // What cannot be read yet can be soon.
    sink.write(
      new FrameBytes(opening() + errorFrame(status, status.code === 504 || status.code === 429 ? undefined : '')),
    );
    sink.end();
    return answer;
  }
}

/** A stream writes its head itself: what middleware would put on an answer is put on here. */
function headersFor(c: Context<HttpEnv>): Readonly<Record<string, string>> {
  return { ...HEADERS, 'X-Request-Id': c.get('requestId'), ...originHeaders(c) };
}

function modeOf({ start }: WatchRequest): 'live' | 'resume' | 'initial' {
  if (start.at === 'now') return 'live';
  return start.at === 'initial' ? 'initial' : 'resume';
}

function grantedTenants(feed: Feed): '*' | readonly string[] {
  return isOpenSet(feed.tenants) ? '*' : feed.tenantNames.toSorted();
}

function isRefusedCursor(error: unknown): boolean {
  return error instanceof StatusError && REFUSED_CODES.has(error.code);
}

function assertMayWatch(caller: Caller): void {
  if (may(caller, 'watch', { scope: 'Namespaced', tenant: undefined })) return;
  throw new MissingRight(`${JSON.stringify(caller.subject)} has no role that may watch`);
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
