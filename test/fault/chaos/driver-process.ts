/**
 * A reconciler as a process of its own, to be killed and frozen: `driver-process.ts <database> <server> <trail>`, as
 * `infra/_shared/kinds/reconciler.ts` composes it, with a short lease. It tells in lines of JSON what it does, stops on SIGTERM,
 * and ends with its standard input.
 */

import { randomUUID } from 'node:crypto';
import { destination, pino } from 'pino';
import { connect } from '#adapters/postgres/client.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { postgresLeases } from '#adapters/postgres/leases.ts';
import { postgresOrphans } from '#adapters/postgres/orphans.ts';
import { postgresPassObjects } from '#adapters/postgres/pass-objects.ts';
import { postgresWorkQueue } from '#adapters/postgres/work-queue.ts';
import { postgresWorkUpkeep } from '#adapters/postgres/work-upkeep.ts';
import { postgresWriterSleep } from '#adapters/postgres/writer-sleep.ts';
import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
import { runResidentReconciler } from '#functions/reconcile/resident-reconciler.ts';
import { runUpkeep } from '#functions/reconcile/run-upkeep.ts';
import { waitForStopSignal } from '#infra/_shared/life/stop-signals.ts';
import { chaosConfig, chaosKinds, LEASE_MS } from '#test/fault/chaos/composition.ts';
import { openTrail } from '#test/fault/chaos/trail.ts';

const [, , databaseUrl = '', serverUrl = '', trailUrl = ''] = process.argv;
const addresses = { databaseUrl, serverUrl, trailUrl };
const holder = randomUUID();
const sql = connect(databaseUrl, {
  applicationName: 'plumbline reconcile',
  maxConnections: 6,
  role: 'plumbline_worker',
  statementTimeoutMs: 15_000,
});
const external = connect(trailUrl, {
  applicationName: `trail ${holder}`,
  maxConnections: 8,
  statementTimeoutMs: 15_000,
});
const kinds = chaosKinds(addresses, sql, openTrail(external), holder);
const logger = pino({ level: 'warn' }, destination({ fd: 1, sync: true }));
const stopping = new AbortController();
const { signal } = stopping;

process.stdin.resume().once('end', () => process.exit(1));
void waitForStopSignal().then(() => stopping.abort());
await registerKinds(databaseUrl, kinds);
const deps: ReconcileDeps = {
  queue: postgresWorkQueue(sql, { holder, leaseMs: LEASE_MS }),
  objects: postgresPassObjects(sql),
  upkeep: postgresWorkUpkeep(sql),
  kinds,
  logger,
  leaseMs: LEASE_MS,
  concurrency: chaosConfig(addresses).reconcileConcurrency,
  reports: {
    onPass: (controller, result) => say({ pass: controller, result }),
    onHung: (controller, change) => say({ hung: controller, change }),
    onError,
  },
};
const sleep = postgresWriterSleep({ role: 'reconciler', databaseUrl, sql, signal });
say({ ready: holder });
await Promise.all([
  runResidentReconciler({ ...deps, sleep }, signal),
  runUpkeep({ ...deps, leases: postgresLeases(sql, holder), orphans: postgresOrphans(sql), onError }, signal),
]);
await Promise.all([sql, external].map((pool) => pool.end({ timeout: 1 })));
process.exit();

function onError(error: unknown): void {
  const chain: string[] = [];
  for (let each = error; each instanceof Error; each = each.cause) chain.push(`${each.name}: ${each.message}`);
  say({ error: chain.join(' < ') || String(error) });
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
