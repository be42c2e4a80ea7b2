/** What operators ask, on a host name of its own that must not be public: the same paths as on every other host. */

import { AggregatorRegistry } from 'prom-client';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';
import { shardNames } from '#infra/cloudflare/shards.ts';

export async function answerOperator({ pathname }: URL, edge: EdgeConfig): Promise<Response> {
  if (pathname === '/healthz') return Response.json({ status: 'alive' });
  if (pathname === '/readyz') return answerReadiness(edge);
  if (pathname === '/metrics') return answerMetrics(edge);
  return Response.json({ error: `there is no ${pathname}; there are /healthz, /readyz, /metrics` }, { status: 404 });
}

async function answerReadiness({ background }: EdgeConfig): Promise<Response> {
  const checks = await background.getByName('background').readiness();
  const isReady = checks.every(({ status }) => status === 'ready');
  return Response.json({ status: isReady ? 'ready' : 'not ready', checks }, { status: isReady ? 200 : 503 });
}

/** Of all objects together. Asking wakes those that sleep. */
async function answerMetrics(edge: EdgeConfig): Promise<Response> {
  const parts = await Promise.all([
    edge.background.getByName('background').metrics(),
    ...shardNames(edge).map((name) => edge.watchShards.getByName(name).metrics()),
  ]);
  const registry = AggregatorRegistry.aggregate(parts.map((metrics) => [...metrics]));
  return new Response(await registry.metrics(), { headers: { 'Content-Type': registry.contentType } });
}
