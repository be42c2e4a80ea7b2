/**
 * The listener of operators and orchestrators: `/healthz` (the process answers), `/readyz` (it can do its work) and
 * `/metrics` (Prometheus). It has no authentication and shows no tenant's data; keep it off public networks.
 *
 * @see https://kubernetes.io/docs/reference/using-api/health-checks/
 */

import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { Registry } from 'prom-client';
import { listen, type ListenOptions } from '#adapters/node/listen.ts';
import { type ReadinessCheck, runCheck } from '#adapters/node/readiness.ts';

export interface OpsServerOptions extends ListenOptions {
  readonly registry: Registry;
  readonly checks: readonly ReadinessCheck[];
  /** After which a check counts as failed. @default 2,000 */
  readonly checkTimeoutMs?: number;
}

export interface OpsServer {
  /** Without a slash at the end. Of a wildcard host, the loopback address. */
  readonly url: string;
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const DEFAULT_CHECK_TIMEOUT_MS = 2_000;

type Routes = Readonly<Record<string, (query: URLSearchParams) => Promise<Answer>>>;

/** Answers once it listens. @throws the system's error when the address cannot be had. */
export async function startOpsServer(options: OpsServerOptions): Promise<OpsServer> {
  const routes: Routes = {
    '/healthz': async () => json(200, { status: 'alive' }),
    '/readyz': (query) => readiness(options.checks, query, options.checkTimeoutMs ?? DEFAULT_CHECK_TIMEOUT_MS),
    '/metrics': async () => ({
      status: 200,
      type: options.registry.contentType,
      body: await options.registry.metrics(),
    }),
  };
  const server = createServer((request, response) => {
    void respond(routes, request, response);
  });
  const url = await listen(server, options);
  return {
    url,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function respond(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = await find(routes, request).catch((error: unknown) => json(500, { error: String(error) }));
  response.writeHead(answer.status, {
    'content-type': answer.type,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    ...(answer.status === 405 && { allow: 'GET, HEAD' }),
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}

async function find(routes: Routes, request: IncomingMessage): Promise<Answer> {
  const [path = '', query] = request.url?.split('?', 2) ?? [];
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (!route) return json(404, { error: `there is no ${path}; there are ${Object.keys(routes).join(', ')}` });
  if (request.method !== 'GET' && request.method !== 'HEAD') return json(405, { error: 'only GET and HEAD' });
  return route(new URLSearchParams(query));
}

/** 200 when every check passed but those that `exclude` names, else 503; the body tells of each. */
async function readiness(
  checks: readonly ReadinessCheck[],
  query: URLSearchParams,
  timeoutMs: number,
): Promise<Answer> {
  const excluded = query.getAll('exclude');
  const unknown = excluded.find((name) => !checks.some((check) => check.name === name));
  if (unknown !== undefined) {
    return json(400, { error: `there is no check ${unknown}; there are ${checks.map(({ name }) => name).join(', ')}` });
  }
  const wanted = checks.filter(({ name }) => !excluded.includes(name));
  const results = await Promise.all(wanted.map((check) => runCheck(check, timeoutMs)));
  const isReady = results.every((result) => result.status === 'ready');
  return json(isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready', checks: results });
}

function json(status: number, body: object): Answer {
  return { status, type: 'application/json', body: `${JSON.stringify(body)}\n` };
}
