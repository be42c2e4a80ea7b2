/** The same functions on workerd, through `wrangler dev`, beside a server on Node on the same database server. */

import { benchColdStart } from '#test/bench/edge-cold-start.ts';
import { compareDelivery } from '#test/bench/edge-delivery.ts';
import { compareRequests } from '#test/bench/edge-requests.ts';
import { compareWatchers } from '#test/bench/edge-watchers.ts';
import { type Instance, startInstance } from '#test/bench/instance.ts';
import type { Finding } from '#test/bench/report.ts';
import { startSessionPooler } from '#test/bench/session-pooler.ts';
import { noPgBouncer } from '#test/support/pgbouncer.ts';

const DIRECTLY = 'without a pooler: a new session for each request';
const POOLED = 'PgBouncer keeping sessions as Hyperdrive does';

export async function benchEdge(): Promise<readonly Finding[]> {
  const node = await startInstance();
  try {
    return [...(await behindPooler(node)), ...(await directly(node)), ...(await benchColdStart(node))];
  } finally {
    await node.stop();
  }
}

async function behindPooler(node: Instance): Promise<readonly Finding[]> {
  if (noPgBouncer !== undefined) {
    return [{ what: 'workerd behind a pooler', figure: `not measured: ${noPgBouncer}`, goal: '', met: undefined }];
  }
  const databaseUrl = await createDatabase(node, 'edge_pooled');
  const pooler = await startSessionPooler(databaseUrl);
  try {
    return await onEdge(
      { DATABASE_URL: pooler.through(databaseUrl), DATABASE_DIRECT_URL: databaseUrl },
      async (edge) => [...(await compareRequests(node, edge, POOLED)), ...(await compareDelivery(node, edge, POOLED))],
    );
  } finally {
    await pooler.stop();
  }
}

async function directly(node: Instance): Promise<readonly Finding[]> {
  const databaseUrl = await createDatabase(node, 'edge');
  return onEdge({ DATABASE_URL: databaseUrl }, async (edge) => [
    ...(await compareRequests(node, edge, DIRECTLY)),
    ...(await compareDelivery(node, edge, DIRECTLY)),
    ...(await compareWatchers(node, edge)),
  ]);
}

/** One of its own, so that nobody else publishes what is written there. */
async function createDatabase(node: Instance, name: string): Promise<string> {
  await node.sql.unsafe(`create database ${name}`);
  const url = new URL(node.databaseUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function onEdge(
  env: Readonly<Record<string, string>>,
  bench: (edge: Instance) => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const edge = await startInstance({ script: 'edge', env });
  try {
    return await bench(edge);
  } finally {
    await edge.stop();
  }
}
