/**
 * Watch alone, in this process, with its news in the test's hands: it hears of new events and new streams when it is
 * told, as one does whose connection for notifications was lost, or who was frozen.
 */

import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { startHttpServer } from '#adapters/node/http-server.ts';
import { socketSse } from '#adapters/node/socket-sse.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { postgresStreams } from '#adapters/postgres/streams.ts';
import { postgresWatchGroups } from '#adapters/postgres/watch-groups.ts';
import { tailing } from '#adapters/postgres/tailing.ts';
import { createAckTokens } from '#core/ack-token.ts';
import { createCursors, type Cursors } from '#core/cursor.ts';
import type { TenantSet } from '#core/identity.ts';
import { createKindRegistry } from '#core/kind-registry.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import { createWatch } from '#functions/watch/handler.ts';
import { createHub } from '#functions/watch/hub.ts';
import { audienceClaim, authenticate } from '#http/authenticate.ts';
import testKinds from '#test/http/kinds.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

export interface WatchServer {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  /** Those of all servers of this process. */
  readonly cursors: Cursors;
  token(tenants: TenantSet): Promise<string>;
  /** A stream has new events; without one, any may have. */
  tellOfEvents(stream?: bigint): void;
  /** Streams were opened or closed. */
  tellOfStreams(): void;
  stop(): Promise<void>;
}

const ISSUER = 'plumbline/test';
const keys = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'test', alg: 'EdDSA' };
const box = secretBox([{ id: 0, key: crypto.getRandomValues(new Uint8Array(32)) }]);
const cursors = createCursors(box);
const ackTokens = createAckTokens(box);

export async function startWatchServer(sql: Sql): Promise<WatchServer> {
  const news = { ofEvents: (_stream?: bigint): void => undefined, ofStreams: (): void => undefined };
  const postgresLog = postgresEventLog(sql);
  const log = { ...postgresLog, tail: tailing(postgresLog, (tell) => (news.ofEvents = tell)) };
  const streams = { ...postgresStreams(sql), onChange: (tell: typeof news.ofStreams) => void (news.ofStreams = tell) };
  const groups = postgresWatchGroups(sql);
  const ignore = (): void => undefined;
  const hub = createHub({
    log,
    streams,
    cursors,
    groups,
    ackTokens,
    onRedelivery: ignore,
    onIsolationViolation: ignore,
    onError: ignore,
    onOpen: ignore,
    onEnd: ignore,
  });
  const watch = createWatch({
    log,
    streams,
    groups,
    ackTokens,
    onFencedAcks: ignore,
    hub,
    store: postgresResources(sql),
    kinds: createKindRegistry([...SHIPPED_KINDS, ...testKinds]),
    cursors,
    authenticate: authenticate({ keys: createLocalJWKSet({ keys: [jwk] }), audience: 'public', issuer: ISSUER }),
    transport: socketSse,
    logger: silentLogger,
  });
  const server = await startHttpServer({
    host: '127.0.0.1',
    port: 0,
    fetch: (request, env) => watch.fetch(request, env),
  });
  return {
    baseUrl: server.url,
    cursors,
    token,
    tellOfEvents: (stream) => news.ofEvents(stream),
    tellOfStreams: () => news.ofStreams(),
    async stop() {
      await hub.stop();
      await server.stop();
    },
  };
}

function token(tenants: TenantSet): Promise<string> {
  return new SignJWT({ roles: ['viewer'], tenants })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'test' })
    .setIssuer(ISSUER)
    .setAudience(audienceClaim('public'))
    .setSubject('test')
    .setExpirationTime('10m')
    .sign(keys.privateKey);
}
