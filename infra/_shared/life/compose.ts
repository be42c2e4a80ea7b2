/** Puts the functions together for one process: which it has, which adapters they get, and how they start and stop. */

import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { createMetrics, type Metrics } from '#adapters/node/metrics.ts';
import { startOpsServer } from '#adapters/node/ops-server.ts';
import { createReconcileMetrics } from '#adapters/node/reconcile-metrics.ts';
import { readOutboxState } from '#adapters/postgres/outbox-state.ts';
import { postgresStreams } from '#adapters/postgres/streams.ts';
import { readWorkState } from '#adapters/postgres/work-state.ts';
import { startBackground } from '#infra/_shared/life/background.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { databaseAccess, type DatabaseAccess } from '#infra/_shared/database/database-access.ts';
import type { DevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import { type InstanceLog, openEventLog } from '#infra/_shared/event-log/event-log.ts';
import type { Installation } from '#infra/_shared/database/installation.ts';
import { type ListenerUrls, startListeners } from '#infra/_shared/serving/listeners.ts';
import { watchLogChoice } from '#infra/_shared/event-log/log-switch.ts';
import { openKinds } from '#infra/_shared/kinds/open-kinds.ts';
import { endPools, openPools, type Pools } from '#infra/_shared/database/pools.ts';
import type { ProcessRole } from '#infra/_shared/settings/process-role.ts';
import { createPublisherReports } from '#infra/_shared/event-log/publisher-reports.ts';
import { localReadiness, stopping } from '#infra/_shared/serving/readiness.ts';
import { runReconciler } from '#infra/_shared/kinds/reconciler.ts';
import type { Started } from '#infra/_shared/life/started.ts';
import { developmentIssuer, remoteIssuer, type TokenIssuer } from '#infra/_shared/tokens/token-issuer.ts';

export interface ComposeOptions {
  readonly config: Config;
  /** Of the database itself; absent: what can be reached is the pooler. Its schema is this program's. */
  readonly databaseUrl: string | undefined;
  readonly installation: Installation;
  readonly roles: ReadonlySet<ProcessRole>;
  readonly logger: Logger;
  /** Used, and needed, by listeners when no issuer is configured. */
  readonly keys: DevelopmentIdentity | undefined;
  /** Aborts when the process is about to stop: from then on it tells that it is not ready. */
  readonly stopSignal: AbortSignal;
}

export interface Servers {
  readonly opsUrl: string;
  /** Absent in a process with neither `api` nor `watch`. */
  readonly listeners: ListenerUrls | undefined;
}

/**
 * Starts everything, and notes in `started` how each part is stopped: streams end with their cursor, answers in flight
 * are finished, then the passes and the batch in flight. What was noted before a failure is the caller's to stop too.
 * @throws {StartError} for what the installation does not have, and kinds that cannot be loaded; the system's error for
 * ports that cannot be had.
 */
export async function compose(options: ComposeOptions, started: Started): Promise<Servers> {
  const { config, databaseUrl, installation, roles, logger } = options;
  const isServing = roles.has('api') || roles.has('watch');
  const access = databaseAccess({ databaseUrl, poolerUrl: config.poolerUrl });
  started.push({ name: 'database listener', stop: () => access.close() });
  await access.check();
  const pools = openPools(access.open);
  started.push({ name: 'database connections', stop: () => endPools(pools) });
  const metrics = createMetrics(() => readOutboxState(pools.ops));
  const reports = createPublisherReports(metrics, logger);
  const eventLog = needsLog(roles) ? await openLog() : undefined;
  const kinds =
    isServing || roles.has('reconcile')
      ? await openKinds({ config, databaseUrl, sql: pools.reconcile, topicAdmin: eventLog?.topicAdmin }, installation)
      : undefined;
  await installation.haveObjectLimit(config.limits.tenantObjects);
  const lifetime = new AbortController();
  started.push({ name: 'keys of tokens', stop: () => lifetime.abort() });
  const issuer = isServing ? issuerOf(options, metrics.registry, lifetime.signal) : undefined;
  const opsServer = await startOpsServer({
    host: config.host,
    port: config.opsPort,
    registry: metrics.registry,
    checks: [
      stopping(options.stopSignal),
      ...localReadiness(pools.ops, reports.lastFailure),
      ...(issuer?.checks ?? []),
    ],
  });
  started.push({ name: 'operations listener', stop: () => opsServer.stop() });

  if (eventLog && roles.has('publish')) {
    const running = startBackground({ config, access, eventLog, logger, reports, pools, signal: lifetime.signal });
    started.push({
      name: 'publisher',
      async stop() {
        lifetime.abort();
        await running;
      },
    });
  }
  if (kinds && roles.has('reconcile')) startReconciling(options, { kinds: kinds.all, access, pools, metrics }, started);
  if (eventLog) followLog(options, pools, lifetime.signal);
  const listeners =
    kinds && issuer
      ? await startListeners(
          {
            config,
            kinds,
            issuer,
            pools,
            logger,
            metrics,
            hasApi: roles.has('api'),
            log: roles.has('watch') ? eventLog?.log : undefined,
            signal: lifetime.signal,
          },
          started,
        )
      : undefined;
  return { opsUrl: opsServer.url, listeners };

  async function openLog(): Promise<InstanceLog> {
    await installation.haveLog(config, logger);
    const opened = await openEventLog({ config, logger, pools, reports });
    started.push({ name: 'event log', stop: () => opened.close() });
    return opened;
  }
}

/** The resource API alone asks the database where the log ends. */
function needsLog(roles: ReadonlySet<ProcessRole>): boolean {
  return roles.has('watch') || roles.has('publish') || roles.has('reconcile');
}

interface ReconcilingDeps {
  readonly kinds: Parameters<typeof runReconciler>[0]['kinds'];
  readonly access: DatabaseAccess;
  readonly pools: Pools;
  readonly metrics: Metrics;
}

function startReconciling(
  { config, logger }: ComposeOptions,
  { kinds, access, pools, metrics }: ReconcilingDeps,
  started: Started,
): void {
  const reconciling = new AbortController();
  const reconcileMetrics = createReconcileMetrics(metrics.registry, () => readWorkState(pools.ops));
  const running = runReconciler(
    { config, kinds, sql: pools.reconcile, logger, metrics: reconcileMetrics },
    access,
    reconciling.signal,
  );
  started.push({
    name: 'reconciler',
    async stop() {
      reconciling.abort();
      await running;
    },
  });
}

/** Stops the process when the log is switched under it. */
function followLog({ config, logger }: ComposeOptions, pools: Pools, signal: AbortSignal): void {
  watchLogChoice(
    {
      sql: pools.ops,
      streams: postgresStreams(pools.watch),
      log: config.kafka ? 'kafka' : 'postgres',
      onSwitched(now) {
        logger.fatal(`the events of this installation lie in the log "${now}" now; start again with EVENT_LOG=${now}`);
        process.exitCode = 1;
        process.kill(process.pid, 'SIGTERM');
      },
    },
    signal,
  );
}

function issuerOf({ config, keys, logger }: ComposeOptions, registry: Registry, signal: AbortSignal): TokenIssuer {
  if (config.issuer) return remoteIssuer(config.issuer, { logger, registry }, signal);
  if (!keys) throw new Error('without an issuer, the development key is needed');
  return developmentIssuer(keys);
}
