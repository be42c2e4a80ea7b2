/** Puts the functions together for one process: which adapters they get, and how they start and stop. */

import { every } from 'hono/combine';
import type { HttpBindings } from '@hono/node-server';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import packageJson from '#package.json' with { type: 'json' };
import { type HttpServer, startHttpServer } from '#adapters/node/http-server.ts';
import { createGroupMetrics } from '#adapters/node/group-metrics.ts';
import { createMetrics } from '#adapters/node/metrics.ts';
import { createReconcileMetrics } from '#adapters/node/reconcile-metrics.ts';
import { startOpsServer } from '#adapters/node/ops-server.ts';
import { socketSse } from '#adapters/node/socket-sse.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { readGroupTotals } from '#adapters/postgres/group-totals.ts';
import { postgresForcedDeletions } from '#adapters/postgres/forced-deletions.ts';
import { postgresObjectEvents } from '#adapters/postgres/object-events.ts';
import { readOutboxState } from '#adapters/postgres/outbox-state.ts';
import { setObjectLimit } from '#adapters/postgres/quotas.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import { readWorkState } from '#adapters/postgres/work-state.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { postgresStreams } from '#adapters/postgres/streams.ts';
import { createAckTokens } from '#core/ack-token.ts';
import { followTokenBlocks } from '#adapters/postgres/token-blocks.ts';
import { createContinueTokens } from '#core/continue-token.ts';
import { createCursors } from '#core/cursor.ts';
import type { Audience } from '#core/identity.ts';
import { createApi } from '#functions/api/handler.ts';
import { createWatch } from '#functions/watch/handler.ts';
import { createHub, type Hub } from '#functions/watch/hub.ts';
import { authenticate } from '#http/authenticate.ts';
import { startBackground } from '#infra/local/background.ts';
import type { Config } from '#infra/local/config.ts';
import { openCursorKeys } from '#infra/local/cursor-key-place.ts';
import { databaseAccess } from '#infra/local/database-access.ts';
import { openEventLog } from '#infra/local/event-log.ts';
import { openLimits } from '#infra/local/limits.ts';
import { watchLogChoice } from '#infra/local/log-switch.ts';
import type { DevelopmentIdentity } from '#infra/local/development-identity.ts';
import { createPublisherReports } from '#infra/local/publisher-reports.ts';
import { loadKinds, registerAll } from '#infra/local/kinds.ts';
import { runReconciler } from '#infra/local/reconciler.ts';
import { shippedKinds } from '#infra/local/shipped-kinds.ts';
import { localReadiness } from '#infra/local/readiness.ts';
import { developmentIssuer, remoteIssuer, type TokenIssuer } from '#infra/local/token-issuer.ts';
import { timed } from '#infra/local/timed.ts';
import type { Started } from '#infra/local/started.ts';

/** With what is waited for a connection and for the answer, a request is told within 10 s. */
const STATEMENT_TIMEOUT_MS = 5_000;
/** A batch takes 20 ms; with this one a publisher that lost the server without being told is at work again. */
const PUBLISH_TIMEOUT_MS = 15_000;
const BLOCKS_TIMEOUT_MS = 2_000;

export interface ComposeOptions {
  readonly config: Config;
  /** Migrated already. */
  readonly databaseUrl: string;
  readonly logger: Logger;
  /** Used, and needed, when no issuer is configured. */
  readonly keys: DevelopmentIdentity | undefined;
}

export interface LocalServers {
  readonly publicUrl: string;
  readonly controllerUrl: string;
  readonly opsUrl: string;
}

/**
 * Starts everything, and notes in `started` how each part is stopped: streams end with their cursor, answers in flight
 * are finished, then the batch in flight. What was noted before a failure is the caller's to stop too.
 * @throws {StartError} for kinds that cannot be loaded; the system's error for ports that cannot be had.
 */
export async function composeLocal(options: ComposeOptions, started: Started): Promise<LocalServers> {
  const { config, databaseUrl, logger } = options;
  const access = databaseAccess(config, databaseUrl);
  started.push({ name: 'database listener', stop: () => access.close() });
  await access.check();
  // Pools of their own: a herd of resuming watchers must not take the connections of writes, nor of the publisher.
  const pool = (name: string, maxConnections: number, statementTimeoutMs?: number): Sql =>
    access.open({
      applicationName: `plumbline ${name}`,
      maxConnections,
      // What serves callers sees the tenants that it names for each statement, and nothing without.
      role: name === 'api' || name === 'watch' ? 'plumbline_server' : 'plumbline_worker',
      ...(statementTimeoutMs !== undefined && { statementTimeoutMs }),
    });
  const pools = {
    api: pool('api', 10, STATEMENT_TIMEOUT_MS),
    watch: pool('watch', 6, STATEMENT_TIMEOUT_MS),
    // Leases are renewed whatever watchers wait for.
    groups: pool('groups', 4, STATEMENT_TIMEOUT_MS),
    publish: pool('publish', 4, PUBLISH_TIMEOUT_MS),
    reconcile: pool('reconcile', 6, PUBLISH_TIMEOUT_MS),
    // Dropping a partition waits for its readers.
    retention: pool('retention', 1),
    ops: pool('ops', 1, STATEMENT_TIMEOUT_MS),
    // Nothing else may hold up the news of a block.
    blocks: pool('blocks', 1, BLOCKS_TIMEOUT_MS),
  };
  started.push({ name: 'database connections', stop: () => endAll(Object.values(pools)) });
  const metrics = createMetrics(() => readOutboxState(pools.ops));
  const groupMetrics = createGroupMetrics(metrics.registry, () => readGroupTotals(pools.ops));
  const reports = createPublisherReports(metrics, logger);
  const eventLog = await openEventLog({ config, databaseUrl, logger, pools, reports });
  started.push({ name: 'event log', stop: () => eventLog.close() });
  const shipped = shippedKinds({ config, databaseUrl, sql: pools.reconcile, topicAdmin: eventLog.topicAdmin });
  const kinds = await loadKinds(shipped, config.kindsModule);
  await registerAll(databaseUrl, kinds);
  const lifetime = new AbortController();
  started.push({ name: 'keys of tokens', stop: () => lifetime.abort() });
  const issuer = issuerOf(options, metrics.registry, lifetime.signal);
  const opsServer = await startOpsServer({
    host: config.host,
    port: config.opsPort,
    registry: metrics.registry,
    checks: [...localReadiness(pools.ops, reports.lastFailure), ...issuer.checks],
  });
  started.push({ name: 'operations listener', stop: () => opsServer.stop() });

  const running = startBackground({ config, databaseUrl, eventLog, logger, reports, pools, signal: lifetime.signal });
  started.push({
    name: 'publisher',
    async stop() {
      lifetime.abort();
      await running;
    },
  });

  const reconciling = new AbortController();
  const reconciler = runReconciler(
    {
      config,
      databaseUrl,
      kinds: kinds.all,
      sql: pools.reconcile,
      logger,
      metrics: createReconcileMetrics(metrics.registry, () => readWorkState(pools.ops)),
    },
    reconciling.signal,
  );
  started.push({
    name: 'reconciler',
    async stop() {
      reconciling.abort();
      await reconciler;
    },
  });

  const box = await openCursorKeys({ config, sql: pools.ops, logger }, lifetime.signal);
  const cursors = createCursors(box);
  const ackTokens = createAckTokens(box);
  const groups = postgresWatchGroups(pools.groups);
  const { log } = eventLog;
  const streams = postgresStreams(pools.watch);
  const chosen = config.kafka ? 'kafka' : 'postgres';
  const blocks = await followTokenBlocks(pools.blocks, lifetime.signal);
  await setObjectLimit(databaseUrl, config.limits.tenantObjects);
  const limits = await openLimits({ config: config.limits, sql: pools.ops, logger, metrics }, lifetime.signal);
  watchLogChoice({ sql: pools.ops, streams, log: chosen, onSwitched: stopWithoutLog }, lifetime.signal);
  const hub: Hub = createHub({
    log,
    streams,
    cursors,
    groups,
    ackTokens,
    blocks,
    places: limits.places,
    trustsKey: issuer.trustsKey,
    onIsolationViolation: (stream) => {
      metrics.isolationViolations.inc();
      logger.fatal({ stream: String(stream) }, 'an event of another tenant was found in a stream');
    },
    onFilterError: () => metrics.filterErrors.inc(),
    onError: (error) => logger.error({ err: error }, 'watching failed; streams that it concerns are ended'),
    onRedelivery: () => groupMetrics.redeliveries.inc(),
    onDeadLettersFull: (group) =>
      logger.error(
        { group: String(group) },
        'a group has all the dead letters that it may have; lanes of it stand still',
      ),
    onOpen: (mode) => metrics.activeStreams.inc({ mode }),
    onEnd: (reason, mode) => {
      metrics.activeStreams.dec({ mode });
      metrics.endedStreams.inc({ reason });
    },
  });

  box.follow((ring, previous) => hub.groups.keysChanged(ring, previous));

  const listen = async (audience: Audience, port: number): Promise<HttpServer> => {
    const identified = authenticate({ ...issuer.optionsFor(audience), blocks });
    const shared = {
      kinds,
      cursors,
      authenticate: every(identified, limits.forRequests()),
      logger: logger.child({ audience }),
      ...(audience === 'public' && { allowedOrigins: config.allowedOrigins }),
    };
    const api = createApi({
      ...shared,
      store: postgresResources(pools.api),
      events: postgresObjectEvents(pools.api),
      forcedDeletions: postgresForcedDeletions(pools.api),
      continueTokens: createContinueTokens(box),
      version: packageJson.version,
    });
    const watch = createWatch({
      ...shared,
      store: postgresResources(pools.watch),
      log,
      streams,
      groups,
      ackTokens,
      onFencedAcks: (count) => groupMetrics.fencedAcks.inc(count),
      hub,
      transport: socketSse,
    });
    const fetch = (request: Request, env: HttpBindings): Response | Promise<Response> =>
      (new URL(request.url).pathname.startsWith('/watch/') ? watch : api).fetch(request, env);
    return startHttpServer({ host: config.host, port, fetch: timed(fetch, metrics) });
  };
  const publicServer = await listen('public', config.publicPort);
  started.push({ name: 'public listener', stop: () => publicServer.stop() });
  const controllerServer = await listen('private', config.controllerPort);
  started.push({ name: 'private listener', stop: () => controllerServer.stop() });
  // Streams never end by themselves: the listeners would wait for them.
  started.push({ name: 'streams', stop: () => hub.stop() });

  return { publicUrl: publicServer.url, controllerUrl: controllerServer.url, opsUrl: opsServer.url };

  function stopWithoutLog(now: string): void {
    logger.fatal(`the events of this installation lie in the log "${now}" now; start again with EVENT_LOG=${now}`);
    process.exitCode = 1;
    process.kill(process.pid, 'SIGTERM');
  }
}

function issuerOf({ config, keys, logger }: ComposeOptions, registry: Registry, signal: AbortSignal): TokenIssuer {
  if (config.issuer) return remoteIssuer(config.issuer, { logger, registry }, signal);
  if (!keys) throw new Error('without an issuer, the development key is needed');
  return developmentIssuer(keys);
}

/** Nothing runs any more; but the driver waits for connections that were lost under a statement. */
async function endAll(pools: readonly Sql[]): Promise<void> {
  await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })));
}
