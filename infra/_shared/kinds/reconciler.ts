/** The reconciler of an instance: its queue, its housekeeping, and how it tells of itself. */

import { randomUUID } from 'node:crypto';
import type { ReconcileMetrics } from '#adapters/node/reconcile-metrics.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresLeases } from '#adapters/postgres/leases.ts';
import { postgresOrphans } from '#adapters/postgres/orphans.ts';
import { postgresPassObjects } from '#adapters/postgres/pass-objects.ts';
import { postgresWorkQueue } from '#adapters/postgres/work-queue.ts';
import { postgresWorkUpkeep } from '#adapters/postgres/work-upkeep.ts';
import type { Kind } from '#core/kind.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { PassReports, ReconcileDeps } from '#functions/reconcile/deps.ts';
import { runResidentReconciler } from '#functions/reconcile/resident-reconciler.ts';
import { runUpkeep, type UpkeepDeps } from '#functions/reconcile/run-upkeep.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import type { DatabaseAccess } from '#infra/_shared/database/database-access.ts';

export interface ReconcilerOptions {
  readonly config: Config;
  readonly kinds: readonly Kind[];
  /** Of its own. */
  readonly sql: Sql;
  readonly logger: Logger;
  readonly metrics: ReconcileMetrics;
}

/** A pass whose process dies is begun again elsewhere after this long. */
const LEASE_MS = 15_000;
const SWEEP_EVERY_MS = 600_000;

export function reconcileDeps({ config, kinds, sql, logger, metrics }: ReconcilerOptions): ReconcileDeps {
  return {
    queue: postgresWorkQueue(sql, { holder: randomUUID(), leaseMs: LEASE_MS }),
    objects: postgresPassObjects(sql),
    upkeep: postgresWorkUpkeep(sql),
    kinds,
    logger: logger.child({ component: 'reconciler' }),
    leaseMs: LEASE_MS,
    concurrency: config.reconcileConcurrency,
    reports: reportsOf(metrics, logger),
  };
}

export function upkeepDeps(options: ReconcilerOptions): UpkeepDeps {
  const { config, sql, kinds, logger } = options;
  return {
    upkeep: postgresWorkUpkeep(sql),
    kinds,
    logger,
    leases: postgresLeases(sql, randomUUID()),
    orphans: postgresOrphans(sql),
    ...(config.orphanGraceHours !== undefined && {
      sweep: { everyMs: SWEEP_EVERY_MS, graceMs: config.orphanGraceHours * 3_600_000 },
    }),
    onError: (error) => logger.warn({ err: error }, 'housekeeping of the work queue failed; it is tried again'),
  };
}

/** Until the signal aborts; resolves when the passes that ran have ended. Never rejects. */
export async function runReconciler(
  options: ReconcilerOptions,
  access: DatabaseAccess,
  signal: AbortSignal,
): Promise<void> {
  const sleep = access.sleepOf({ role: 'reconciler', sql: options.sql, signal });
  await Promise.all([
    runResidentReconciler({ ...reconcileDeps(options), sleep }, signal),
    runUpkeep(upkeepDeps(options), signal),
  ]);
}

function reportsOf(metrics: ReconcileMetrics, logger: Logger): PassReports {
  return {
    onPass(controller, result, durationMs) {
      metrics.passes.observe({ controller, result }, durationMs / 1_000);
    },
    onHung: (controller, change) => metrics.hungPasses.inc({ controller }, change),
    onError(error) {
      metrics.errors.inc();
      logger.warn({ err: error }, 'reconciling failed; it is tried again');
    },
  };
}
