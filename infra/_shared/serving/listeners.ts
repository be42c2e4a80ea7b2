/** The two listeners for callers: each audience's tokens at its own, with the functions that this process has. */

import type { HttpBindings } from '@hono/node-server';
import { every } from 'hono/combine';
import type { Logger } from 'pino';
import packageJson from '#package.json' with { type: 'json' };
import type { RotatingBox } from '#adapters/ciphers/rotating-box.ts';
import { createGroupMetrics } from '#adapters/node/group-metrics.ts';
import { type HttpServer, startHttpServer } from '#adapters/node/http-server.ts';
import type { Metrics } from '#adapters/node/metrics.ts';
import { socketSse } from '#adapters/node/socket-sse.ts';
import { postgresForcedDeletions } from '#adapters/postgres/forced-deletions.ts';
import { readGroupTotals } from '#adapters/postgres/group-totals.ts';
import { postgresObjectEvents } from '#adapters/postgres/object-events.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { postgresStreams } from '#adapters/postgres/streams.ts';
import { followTokenBlocks } from '#adapters/postgres/token-blocks.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import { createAckTokens } from '#core/ack-token.ts';
import { createContinueTokens } from '#core/continue-token.ts';
import { createCursors } from '#core/cursor.ts';
import type { Audience } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import { createApi } from '#functions/api/handler.ts';
import { createWatch, type WatchDeps } from '#functions/watch/handler.ts';
import { authenticate } from '#http/authenticate.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { openCursorKeys } from '#infra/_shared/serving/cursor-key-place.ts';
import { openHub } from '#infra/_shared/serving/hub.ts';
import { openLimits, type OpenLimits } from '#infra/_shared/serving/limits.ts';
import type { Pools } from '#infra/_shared/database/pools.ts';
import type { Started } from '#infra/_shared/life/started.ts';
import { type Fetch, timed } from '#infra/_shared/serving/timed.ts';
import type { TokenIssuer } from '#infra/_shared/tokens/token-issuer.ts';

export interface ListenersOptions {
  readonly config: Config;
  readonly kinds: KindRegistry;
  readonly issuer: TokenIssuer;
  readonly pools: Pools;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly hasApi: boolean;
  /** What watches read; absent: this process has none. */
  readonly log: EventLog | undefined;
  /** Until it aborts, keys, blocks and quotas are followed. */
  readonly signal: AbortSignal;
}

export interface ListenerUrls {
  readonly publicUrl: string;
  readonly controllerUrl: string;
}

type WatchParts = Pick<WatchDeps, 'log' | 'streams' | 'groups' | 'ackTokens' | 'hub' | 'onFencedAcks'>;

/** Notes in `started` how they stop: streams end with their cursor, then answers in flight are finished. */
export async function startListeners(options: ListenersOptions, started: Started): Promise<ListenerUrls> {
  const { config, kinds, issuer, pools, logger, metrics, hasApi, signal } = options;
  const box = await openCursorKeys({ config, sql: pools.ops, logger }, signal);
  const cursors = createCursors(box);
  const blocks = await followTokenBlocks(pools.blocks, signal);
  const limits = await openLimits({ config: config.limits, sql: pools.ops, logger, metrics }, signal);
  const watching = options.log && openWatching(options.log, options, { box, cursors, blocks, limits });

  const listen = (audience: Audience, port: number): Promise<HttpServer> => {
    const shared = {
      kinds,
      cursors,
      authenticate: every(authenticate({ ...issuer.optionsFor(audience), blocks }), limits.forRequests()),
      logger: logger.child({ audience }),
      ...(audience === 'public' && { allowedOrigins: config.allowedOrigins }),
    };
    const api = hasApi
      ? createApi({
          ...shared,
          store: postgresResources(pools.api),
          events: postgresObjectEvents(pools.api),
          forcedDeletions: postgresForcedDeletions(pools.api),
          continueTokens: createContinueTokens(box),
          version: packageJson.version,
        })
      : undefined;
    const watch =
      watching && createWatch({ ...shared, ...watching, store: postgresResources(pools.watch), transport: socketSse });
    return startHttpServer({
      host: config.host,
      port,
      fetch: timed(routed(api, watch), metrics),
      logger: shared.logger,
    });
  };
  const publicServer = await listen('public', config.publicPort);
  started.push({ name: 'public listener', stop: () => publicServer.stop() });
  const controllerServer = await listen('private', config.controllerPort);
  started.push({ name: 'private listener', stop: () => controllerServer.stop() });
  // Streams never end by themselves: the listeners would wait for them.
  if (watching) started.push({ name: 'streams', stop: () => watching.hub.stop() });
  return { publicUrl: publicServer.url, controllerUrl: controllerServer.url };
}

interface Opened {
  readonly box: RotatingBox;
  readonly cursors: WatchDeps['cursors'];
  readonly blocks: Awaited<ReturnType<typeof followTokenBlocks>>;
  readonly limits: OpenLimits;
}

function openWatching(
  log: EventLog,
  { issuer, pools, logger, metrics }: ListenersOptions,
  { box, cursors, blocks, limits }: Opened,
): WatchParts {
  const groupMetrics = createGroupMetrics(metrics.registry, () => readGroupTotals(pools.ops));
  const groups = postgresWatchGroups(pools.groups);
  const streams = postgresStreams(pools.watch);
  const ackTokens = createAckTokens(box);
  const { trustsKey } = issuer;
  const hub = openHub(
    { log, streams, cursors, groups, ackTokens, blocks, places: limits.places, trustsKey },
    { logger, alarm: (fields, message) => logger.fatal(fields, message), metrics, groupMetrics },
  );
  box.follow((ring, previous) => hub.groups.keysChanged(ring, previous));
  return { log, streams, groups, ackTokens, hub, onFencedAcks: (count) => groupMetrics.fencedAcks.inc(count) };
}

interface App {
  fetch(request: Request, env: HttpBindings): Response | Promise<Response>;
}

/** What this process does not serve, the one that it has answers with 404. */
function routed(api: App | undefined, watch: App | undefined): Fetch {
  return (request, env) => {
    const [wanted, other] = new URL(request.url).pathname.startsWith('/watch/') ? [watch, api] : [api, watch];
    const app = wanted ?? other;
    if (!app) throw new TypeError('a listener needs a function');
    return app.fetch(request, env);
  };
}
