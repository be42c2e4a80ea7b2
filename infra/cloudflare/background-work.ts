/** Publishing, reconciling and housekeeping, each once: over few connections, within what an invocation may take. */

import type { Registry } from 'prom-client';
import { createGroupMetrics } from '#adapters/node/group-metrics.ts';
import { createOwnMetrics } from '#adapters/node/metrics.ts';
import { type CheckResult, type ReadinessCheck, runCheck } from '#adapters/node/readiness.ts';
import { createReconcileMetrics } from '#adapters/node/reconcile-metrics.ts';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { readGroupTotals } from '#adapters/postgres/group-totals.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { readOutboxState } from '#adapters/postgres/outbox-state.ts';
import { assertServable } from '#adapters/postgres/servable.ts';
import { readWorkState } from '#adapters/postgres/work-state.ts';
import type { Notice } from '#adapters/workers/notices.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';
import { maintainLog } from '#functions/publish/run-retention.ts';
import { runOnce } from '#functions/reconcile/run-once.ts';
import { doUpkeep } from '#functions/reconcile/run-upkeep.ts';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';
import { type Again, createLogWork } from '#infra/cloudflare/log-work.ts';
import { type OwnLog, openOwnLog } from '#infra/cloudflare/own-log.ts';
import { logUpkeep } from '#infra/_shared/event-log/log-upkeep.ts';
import { createPublisherReports } from '#infra/_shared/event-log/publisher-reports.ts';
import { localReadiness } from '#infra/_shared/serving/readiness.ts';
import { reconcileDeps, upkeepDeps } from '#infra/_shared/kinds/reconciler.ts';

// An object may have six connections open. A pass on a managed database takes up to three beside these.
const PUBLISH_CONNECTIONS = 1;
const RECONCILE_CONNECTIONS = 2;
const STATEMENT_TIMEOUT_MS = 15_000;
/** No pass is begun later: an alarm goes on. */
const RECONCILE_BUDGET_MS = 25_000;
/** What is left then of the housekeeping is the next cron's. */
const UPKEEP_BUDGET_MS = 25_000;
const CHECK_TIMEOUT_MS = 2_000;

export interface BackgroundWorkOptions {
  readonly edge: EdgeConfig;
  readonly kindsOver: (sql: Sql, topicAdmin?: TopicAdmin) => KindRegistry;
  readonly logger: Logger;
  /** Told what was published. */
  readonly onNews: (notices: readonly Notice[]) => void;
  /** There may be something to publish: a pass has ended, which may have written, or a topic was made. */
  readonly onWritten: () => void;
}

export interface BackgroundWork {
  publish(): Promise<Again>;
  /** Makes topics what they should be, when there are any. */
  keepTopics(): Promise<Again>;
  /** Returns in how many milliseconds something is due; undefined: nothing is. */
  reconcile(): Promise<number | undefined>;
  upkeep(): Promise<void>;
  /** False once the installation has another log. */
  isCurrent(): Promise<boolean>;
  readiness(): Promise<readonly CheckResult[]>;
  readonly registry: Registry;
  close(): Promise<void>;
}

/** @throws {StatusError} ServiceUnavailable when the database is away, or has another log. */
export async function openBackgroundWork({
  edge,
  kindsOver,
  logger,
  onNews,
  onWritten,
}: BackgroundWorkOptions): Promise<BackgroundWork> {
  const pool = (name: string, maxConnections: number): Sql =>
    connect(edge.databaseUrl(), {
      applicationName: `plumbline edge ${name}`,
      pooler: 'preparing',
      maxConnections,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    });
  const pools = { publish: pool('publish', PUBLISH_CONNECTIONS), reconcile: pool('reconcile', RECONCILE_CONNECTIONS) };
  const metrics = createOwnMetrics(() => readOutboxState(pools.publish));
  createGroupMetrics(metrics.registry, () => readGroupTotals(pools.publish));
  const reports = createPublisherReports(metrics, logger);
  const eventLog = await openLog();
  const pending = postgresOutbox(pools.publish);
  const logWork = createLogWork({ eventLog, pending, reports, onNews, onTopics: onWritten });
  const kinds = kindsOver(pools.reconcile, eventLog.topicAdmin).all;
  const options = {
    config: edge.config,
    kinds,
    sql: pools.reconcile,
    logger,
    metrics: createReconcileMetrics(metrics.registry, () => readWorkState(pools.publish)),
  };
  const deps = reconcileDeps(options);
  const passes = {
    ...deps,
    // Each has sessions of its own on a server of managed databases.
    concurrency: Object.keys(edge.config.databaseServers).length > 0 ? 1 : deps.concurrency,
    reports: {
      onHung: () => undefined,
      onError: (error: unknown) => deps.reports?.onError(error),
      ...deps.reports,
      onPass(...args: Parameters<NonNullable<typeof deps.reports>['onPass']>) {
        deps.reports?.onPass(...args);
        onWritten();
      },
    },
  };
  const isServable: ReadinessCheck = { name: 'set-up', check: () => assertServable(pools.publish, kinds) };
  return {
    publish: logWork.publish,
    keepTopics: logWork.keepTopics,
    isCurrent: eventLog.isCurrent,
    async reconcile() {
      const budget = AbortSignal.timeout(RECONCILE_BUDGET_MS);
      await runOnce(passes, { budgetMs: RECONCILE_BUDGET_MS });
      if (budget.aborted) return 0;
      return passes.queue.nextDueMs(kinds.flatMap(({ controllers }) => controllers.map(({ id }) => id)));
    },
    async upkeep() {
      try {
        // Publishing has one connection, and does not wait for this.
        await maintainLog(logUpkeep(pools.reconcile, edge.config));
      } finally {
        await doUpkeep(upkeepDeps(options), AbortSignal.timeout(UPKEEP_BUDGET_MS));
      }
    },
    readiness() {
      const checks = [...localReadiness(pools.publish, reports.lastFailure), isServable, brokersCheck(eventLog)];
      return Promise.all(checks.map((check) => runCheck(check, CHECK_TIMEOUT_MS)));
    },
    registry: metrics.registry,
    async close() {
      await eventLog.close();
      await endPools();
    },
  };

  async function openLog(): Promise<OwnLog> {
    try {
      await assertServable(pools.publish, kindsOver(pools.reconcile).all);
      return await openOwnLog({ edge, logger, sql: pools.publish, reports, owner: 'background' });
    } catch (error) {
      await endPools();
      throw error;
    }
  }

  async function endPools(): Promise<void> {
    await Promise.all(Object.values(pools).map((sql) => sql.end({ timeout: 1 })));
  }
}

/** Other hosts have looked before they start. */
function brokersCheck(log: OwnLog): ReadinessCheck {
  return { name: 'event log', check: () => log.assertBrokers() };
}
