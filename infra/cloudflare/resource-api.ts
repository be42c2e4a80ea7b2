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
import type { Logger } from '#core/ports/logger.ts';
import { createApi } from '#functions/api/handler.ts';
import type { HttpEnv } from '#http/app.ts';
import { authenticateBy } from '#http/authenticate.ts';
import { limitRequests } from '#http/limit-requests.ts';
import { audienceAt } from '#infra/cloudflare/config.ts';
import { identify } from '#infra/cloudflare/identify.ts';
import { edge, tally } from '#infra/cloudflare/installation.ts';
import { freshKnowledge, knownLimits } from '#infra/cloudflare/knowledge.ts';
import { defaultLimits } from '#infra/local/limits.ts';

const STATEMENT_TIMEOUT_MS = 5_000;

const LIMITS = defaultLimits(edge.config.limits);
/** Of this isolate. */
const limited = { public: limitHere(), private: limitHere() };

export interface ResourceApiOptions {
  readonly kindsOver: (sql: Sql) => KindRegistry;
  readonly logger: Logger;
  /** Called with what is still to be done when the answer is there. */
  readonly later: (work: Promise<unknown>) => void;
}

export async function answerResourceRequest(request: Request, options: ResourceApiOptions): Promise<Response> {
  const { kindsOver, logger, later } = options;
  const audience = audienceAt(request.url, edge);
  const sql = connect(edge.databaseUrl(), {
    applicationName: 'plumbline edge api',
    pooler: 'preparing',
    // Of the six that an invocation may have open. A dry run takes one more.
    isPipelined: true,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  try {
    const served = serving(sql);
    const { box, blocks } = await freshKnowledge(sql, LIMITS);
    const app = createApi({
      store: postgresResources(served),
      events: postgresObjectEvents(served),
      forcedDeletions: postgresForcedDeletions(served),
      kinds: kindsOver(sql),
      cursors: createCursors(box),
      continueTokens: createContinueTokens(box),
      authenticate: every(authenticateBy(identify[audience], blocks), limited[audience]),
      logger: logger.child({ audience }),
      version: packageJson.version,
      ...(audience === 'public' && { allowedOrigins: edge.config.allowedOrigins }),
    });
    const answer = await app.fetch(request);
    if (answer.ok && !isRead(request)) later(edge.background().kick());
    return asEncoded(answer);
  } finally {
    later(sql.end({ timeout: 1 }));
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

function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}
