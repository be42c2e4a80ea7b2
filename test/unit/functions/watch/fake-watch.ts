/** Watch over a log and a directory in memory, for a caller who sees everything. */

import type { Hono } from 'hono';
import { createKindRegistry } from '#core/kind-registry.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { ResourceStore } from '#core/ports/resources.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import { createWatch } from '#functions/watch/handler.ts';
import { createHub, type Hub } from '#functions/watch/hub.ts';
import type { HttpEnv } from '#http/app.ts';
import { streamSse } from '#http/stream-sse.ts';
import { noBlocks } from '#test/support/no-blocks.ts';
import { silentLogger } from '#test/support/silent-logger.ts';
import { noGroups, plainCursors } from '#test/unit/functions/watch/fakes.ts';

export interface FakeWatch {
  readonly app: Hono<HttpEnv>;
  readonly hub: Hub;
}

export function fakeWatch(deps: {
  readonly log: EventLog;
  readonly streams: StreamDirectory;
  readonly store: ResourceStore;
}): FakeWatch {
  const ignore = (): void => undefined;
  const shared = { ...deps, cursors: plainCursors, ...noGroups };
  const hub = createHub({
    ...shared,
    blocks: noBlocks,
    onRedelivery: ignore,
    onDeadLettersFull: () => undefined,
    onIsolationViolation: ignore,
    onFilterError: ignore,
    onError: ignore,
    onOpen: ignore,
    onEnd: ignore,
  });
  const app = createWatch({
    ...shared,
    onFencedAcks: ignore,
    hub,
    kinds: createKindRegistry([]),
    transport: streamSse,
    logger: silentLogger,
    async authenticate(c, next) {
      const expiresAtMs = Date.now() + 60_000;
      c.set('caller', { audience: 'public', subject: 'test', roles: ['viewer'], tenants: '*', expiresAtMs });
      await next();
    },
  });
  return { app, hub };
}
