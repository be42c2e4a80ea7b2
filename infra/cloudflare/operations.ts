/** What operators ask, on a host name of its own that must not be public: the same paths as on every other host. */

import type { CheckResult } from '#adapters/node/readiness.ts';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';
import { sumOf } from '#infra/cloudflare/kept-counts.ts';
import { shardNames } from '#infra/cloudflare/shards.ts';
import { messageOf } from '#infra/_shared/life/start-error.ts';

type Route = (edge: EdgeConfig, query: URLSearchParams) => Promise<Response>;

const ROUTES: ReadonlyMap<string, Route> = new Map([
  ['/healthz', async () => Response.json({ status: 'alive' })],
  ['/readyz', answerReadiness],
  ['/metrics', answerMetrics],
]);

export async function answerOperator({ method, url }: Request, edge: EdgeConfig): Promise<Response> {
  const { pathname, searchParams } = new URL(url);
  const route = ROUTES.get(pathname);
  if (!route) return refuse(404, `there is no ${pathname}; there are ${[...ROUTES.keys()].join(', ')}`);
  if (method !== 'GET' && method !== 'HEAD') return refuse(405, 'only GET and HEAD', { Allow: 'GET, HEAD' });
  return route(edge, searchParams);
}

/** 200 when every check passed but those that `exclude` names, else 503; the body tells of each. */
async function answerReadiness({ background }: EdgeConfig, query: URLSearchParams): Promise<Response> {
  const all = await background()
    .readiness()
    .catch((error: unknown): readonly CheckResult[] => [
      { name: 'background', status: 'not ready', reason: messageOf(error) },
    ]);
  const checks = all.filter(({ name }) => !query.getAll('exclude').includes(name));
  const isReady = checks.every(({ status }) => status === 'ready');
  return Response.json({ status: isReady ? 'ready' : 'not ready', checks }, { status: isReady ? 200 : 503 });
}

/** Of all objects together, or of none: a sum without one of them would look as if it had begun anew. */
async function answerMetrics(edge: EdgeConfig): Promise<Response> {
  try {
    const parts = await Promise.all([
      edge.background().metrics(),
      ...shardNames(edge).map((name) => edge.watchShards.getByName(name).metrics()),
    ]);
    const registry = sumOf(parts);
    return new Response(await registry.metrics(), { headers: { 'Content-Type': registry.contentType } });
  } catch (error) {
    return refuse(503, `an object that counts cannot be asked: ${messageOf(error)}`);
  }
}

function refuse(status: number, error: string, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ error }, { status, headers });
}
