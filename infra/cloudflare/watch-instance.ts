/** Watches of one shard: one tail per stream that any of its clients watches, for all of them. */

import { every } from 'hono/combine';
import { rotatingBox } from '#adapters/ciphers/rotating-box.ts';
import { createGroupMetrics } from '#adapters/node/group-metrics.ts';
import { createOwnMetrics } from '#adapters/node/metrics.ts';
import { connect, serving, type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { assertServable } from '#adapters/postgres/servable.ts';
import { postgresStreams } from '#adapters/postgres/streams.ts';
import { followTokenBlocks } from '#adapters/postgres/token-blocks.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import type { Notices } from '#adapters/workers/notices.ts';
import { createAckTokens } from '#core/ack-token.ts';
import { createCursors } from '#core/cursor.ts';
import type { Audience } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Logger } from '#core/ports/logger.ts';
import { createWatch } from '#functions/watch/handler.ts';
import { authenticate } from '#http/authenticate.ts';
import { streamSse } from '#http/stream-sse.ts';
import { audienceAt, type EdgeConfig } from '#infra/cloudflare/config.ts';
import { cursorKeysOf } from '#infra/cloudflare/cursor-keys.ts';
import { openOwnLog } from '#infra/cloudflare/own-log.ts';
import { toldElsewhere } from '#infra/cloudflare/told-elsewhere.ts';
import { openHub } from '#infra/_shared/serving/hub.ts';
import { openLimits } from '#infra/_shared/serving/limits.ts';
import { createPublisherReports } from '#infra/_shared/event-log/publisher-reports.ts';
import { remoteIssuer } from '#infra/_shared/tokens/token-issuer.ts';

const STATEMENT_TIMEOUT_MS = 5_000;
// An object may have six connections open: four in pools, one for a list at the log's head, and one to the issuer of tokens.
const WATCH_CONNECTIONS = 2;
const GROUP_CONNECTIONS = 2;
const BOOKMARK_MS = 2_000;
/** Of what changes in groups nobody else tells: lanes that were taken, acks at other shards. */
const GROUPS_FLOOR_MS = 500;
const GROUP_NOTICE = { channel: 'plumbline_watch_group', payload: '' };
const SNAPSHOTS = { maxOpen: 1, maxPerOwner: 1, patienceMs: 5_000 };

export interface WatchInstanceOptions {
  readonly edge: EdgeConfig;
  readonly kindsOver: (sql: Sql) => KindRegistry;
  readonly logger: Logger;
  /** The shard's. */
  readonly name: string;
  readonly notices: Notices;
}

export interface WatchInstance {
  answer(request: Request): Promise<Response>;
  /** Open streams. */
  readonly streams: number;
  /** False once the installation has another log: streams are to end, and begin anew. */
  isCurrent(): Promise<boolean>;
  readonly metrics: ReturnType<typeof createOwnMetrics>['registry'];
  /** Ends all streams, with their cursor, and the connections. */
  stop(): Promise<void>;
}

/** @throws {StatusError} ServiceUnavailable when the database is away. */
export async function openWatchInstance({
  edge,
  kindsOver,
  logger,
  name,
  notices,
}: WatchInstanceOptions): Promise<WatchInstance> {
  const pool = (use: string, maxConnections: number): Sql =>
    connect(edge.databaseUrl(), {
      applicationName: `plumbline edge ${use}`,
      pooler: 'preparing',
      maxConnections,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      listen: notices.listen,
    });
  const pools = {
    watch: pool('watch', WATCH_CONNECTIONS),
    // And for what is small: keys, blocks, quotas.
    groups: pool('groups', GROUP_CONNECTIONS),
  };
  const lifetime = new AbortController();
  try {
    return await compose();
  } catch (error) {
    await end();
    throw toCallerError(error, 'watch');
  }

  async function compose(): Promise<WatchInstance> {
    const kinds = kindsOver(pools.watch);
    await assertServable(pools.watch, kinds.all);
    const metrics = createOwnMetrics(toldElsewhere);
    const groupMetrics = createGroupMetrics(metrics.registry, toldElsewhere);
    const issuer = remoteIssuer(edge.issuer, { logger, registry: metrics.registry }, lifetime.signal);
    const reports = createPublisherReports(metrics, logger);
    const [box, blocks, limits, eventLog] = await Promise.all([
      rotatingBox(cursorKeysOf(edge, pools.groups), lifetime.signal),
      followTokenBlocks(pools.groups, lifetime.signal),
      openLimits({ config: edge.config.limits, sql: pools.groups, logger, metrics }, lifetime.signal),
      openOwnLog({ edge, logger, sql: pools.watch, reports, owner: name }),
    ]);
    lifetime.signal.addEventListener('abort', () => void eventLog.close(), { once: true });
    const cursors = createCursors(box);
    const ackTokens = createAckTokens(box);
    const groups = postgresWatchGroups(pools.groups);
    const served = serving(pools.watch);
    const streams = postgresStreams(served);
    const { log } = eventLog;
    const hub = openHub(
      { log, streams, cursors, groups, ackTokens, blocks, places: limits.places, trustsKey: issuer.trustsKey },
      { logger, alarm: (fields, message) => logger.error(fields, message), metrics, groupMetrics },
      // Only what is sent tells that a client is gone, and the second time at that.
      { bookmarkMs: BOOKMARK_MS },
    );
    box.follow((ring, previous) => hub.groups.keysChanged(ring, previous));
    const ticker = setInterval(() => notices.tell(GROUP_NOTICE), GROUPS_FLOOR_MS);
    lifetime.signal.addEventListener('abort', () => clearInterval(ticker), { once: true });
    const store = postgresResources(served, SNAPSHOTS);
    const appFor = (audience: Audience): ReturnType<typeof createWatch> =>
      createWatch({
        kinds,
        cursors,
        store,
        log,
        streams,
        groups,
        ackTokens,
        hub,
        authenticate: every(authenticate({ ...issuer.optionsFor(audience), blocks }), limits.forRequests()),
        logger: logger.child({ audience }),
        onFencedAcks: (count) => groupMetrics.fencedAcks.inc(count),
        transport: streamSse,
        ...(audience === 'public' && { allowedOrigins: edge.config.allowedOrigins }),
      });
    const apps = { public: appFor('public'), private: appFor('private') };
    return {
      answer: async (request) => apps[audienceAt(request.url, edge)].fetch(request, { signal: request.signal }),
      get streams() {
        return hub.openStreams;
      },
      isCurrent: eventLog.isCurrent,
      metrics: metrics.registry,
      async stop() {
        await hub.stop();
        await end();
      },
    };
  }

  async function end(): Promise<void> {
    lifetime.abort();
    await Promise.all(Object.values(pools).map((sql) => sql.end({ timeout: 1 })));
  }
}
