/** The resource API in a worker: it holds no state, so each request has its own connection, through the pooler. */

import type { MiddlewareHandler } from 'hono';
import { every } from 'hono/combine';
import packageJson from '#package.json' with { type: 'json' };
import { connect, serving, type Sql } from '#adapters/postgres/client.ts';
import { postgresForcedDeletions } from '#adapters/postgres/forced-deletions.ts';
import { postgresObjectEvents } from '#adapters/postgres/object-events.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { createContinueTokens } from '#core/continue-token.ts';
import { createCursors } from '#core/cursor.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Audience, Caller } from '#core/identity.ts';
import type { Logger } from '#core/ports/logger.ts';
import { StatusError } from '#core/status-error.ts';
import { createApi } from '#functions/api/handler.ts';
import type { HttpEnv } from '#http/app.ts';
import { authenticateBy } from '#http/authenticate.ts';
import { keyOf, nameOf, payerAt } from '#http/charged-to.ts';
import { limitRequests } from '#http/limit-requests.ts';
import { audienceAt } from '#infra/cloudflare/config.ts';
import { identify } from '#infra/cloudflare/identify.ts';
import { createAtOnce } from '#infra/cloudflare/at-once.ts';
import { edge, tally } from '#infra/cloudflare/installation.ts';
import { freshKnowledge, knownLimits, noKnowledge } from '#infra/cloudflare/knowledge.ts';
import { defaultLimits } from '#infra/_shared/serving/limits.ts';

const STATEMENT_TIMEOUT_MS = 5_000;

const LIMITS = defaultLimits(edge.config.limits);
/** Of this isolate. */
const limited = { public: limitHere(), private: limitHere() };
const atOnce = { public: createAtOnce(edge.requestsAtOnce), private: createAtOnce(edge.requestsAtOnce) };
/** Who asks again at once would else keep the thread busy with refusing. */
const HELD_BACK_MS = 500;

export interface ResourceApiOptions {
  readonly kindsOver: (sql: Sql) => KindRegistry;
  readonly logger: Logger;
  /** Called with what is still to be done when the answer is there. */
  readonly later: (work: Promise<unknown>) => void;
}

/** @throws {StatusError} TooManyRequests, before anything is asked of the database, when the payer has as many open as it may. */
export async function answerResourceRequest(request: Request, options: ResourceApiOptions): Promise<Response> {
  const audience = audienceAt(request.url, edge);
  const identified = identify[audience](request.headers.get('Authorization') ?? undefined);
  const giveBack = await identified.then(
    (caller) => takePlace(caller, audience, new URL(request.url).pathname),
    () => undefined,
  );
  const answering = answer(request, { ...options, audience, identified, giveBack });
  // Goes on when the client is gone: what is cut off gives no place back.
  options.later(answering.then(nothing, nothing));
  return answering;
}

/** @returns gives it back. */
async function takePlace(caller: Caller, audience: Audience, path: string): Promise<() => void> {
  const payer = payerAt(caller, path);
  const giveBack = atOnce[audience].take(keyOf(payer));
  if (giveBack) return giveBack;
  tally.refused();
  await new Promise((resolve) => setTimeout(resolve, HELD_BACK_MS));
  throw new StatusError(
    'TooManyRequests',
    `${nameOf(payer)} has ${edge.requestsAtOnce} requests open, which is as many as are answered at once: wait as long as Retry-After says, and send fewer side by side`,
    { details: { retryAfterSeconds: 1 } },
  );
}

interface Answering extends ResourceApiOptions {
  readonly audience: Audience;
  readonly identified: Promise<Caller>;
  /** Absent for who is a stranger. */
  readonly giveBack: (() => void) | undefined;
}

async function answer(
  request: Request,
  { kindsOver, logger, later, audience, identified, giveBack }: Answering,
): Promise<Response> {
  const sql = connect(edge.databaseUrl(), {
    applicationName: 'plumbline edge api',
    pooler: 'preparing',
    // Of the six that an invocation may have open. A dry run takes one more.
    isPipelined: true,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  try {
    const served = serving(sql);
    const { box, blocks } = await identified.then(() => freshKnowledge(sql, LIMITS), noKnowledge);
    const app = createApi({
      store: postgresResources(served),
      events: postgresObjectEvents(served),
      forcedDeletions: postgresForcedDeletions(served),
      kinds: kindsOver(sql),
      cursors: createCursors(box),
      continueTokens: createContinueTokens(box),
      authenticate: every(
        authenticateBy(() => identified, blocks),
        limited[audience],
      ),
      logger: logger.child({ audience }),
      version: packageJson.version,
      ...(audience === 'public' && { allowedOrigins: edge.config.allowedOrigins }),
    });
    const answered = await app.fetch(request);
    if (answered.ok && !isRead(request)) later(edge.background().kick());
    return asEncoded(answered);
  } finally {
    later(sql.end({ timeout: 1 }).finally(giveBack));
  }
}

function limitHere(): MiddlewareHandler<HttpEnv> {
  return limitRequests({ limits: knownLimits(LIMITS), onRefused: tally.refused });
}

/** What is compressed already must not be compressed once more: workerd does so with each body that names an encoding. */
function asEncoded(answer: Response): Response {
  if (!answer.headers.has('Content-Encoding')) return answer;
  const { status, headers, body } = answer;
  const init: ResponseInit & { encodeBody: 'manual' } = { status, headers, encodeBody: 'manual' };
  return new Response(body, init);
}

function nothing(): void {}

function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}
