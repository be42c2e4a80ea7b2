/** The resource API alone, on a real PostgreSQL and a real HTTP server, with a resident publisher beside it. */

import { randomBytes } from 'node:crypto';
import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from 'jose';

import { rotatingBox } from '#adapters/ciphers/rotating-box.ts';
import { startHttpServer, type HttpServerOptions } from '#adapters/node/http-server.ts';
import { connect } from '#adapters/postgres/client.ts';
import { postgresCursorKeys } from '#adapters/postgres/cursor-keys.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { postgresForcedDeletions } from '#adapters/postgres/forced-deletions.ts';
import { postgresObjectEvents } from '#adapters/postgres/object-events.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresWriterSleep } from '#adapters/postgres/writer-sleep.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { createContinueTokens } from '#core/continue-token.ts';
import { createCursors } from '#core/cursor.ts';
import type { Audience } from '#core/identity.ts';
import { createKindRegistry } from '#core/kind-registry.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import type { Logger } from '#core/ports/logger.ts';
import { createApi } from '#functions/api/handler.ts';
import { runResidentPublisher } from '#functions/publish/resident-publisher.ts';
import { audienceClaim, authenticate } from '#http/authenticate.ts';
import testKinds from '#test/http/kinds.ts';
import type { Grant, Target } from '#test/http/target.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { noBlocks } from '#test/support/no-blocks.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const ISSUER = 'plumbline/test';

export interface ApiServer extends Target {
  readonly databaseUrl: string;
  stop(): Promise<void>;
}

export interface ApiServerOptions {
  /** @default public */
  readonly audience?: Audience;
  /** @default errors to the console, nothing else */
  readonly logger?: Logger;
  /** @default true */
  readonly withPublisher?: boolean;
  /** See `ApiDeps`. */
  readonly nameSuffix?: () => string;
  readonly timeoutsMs?: HttpServerOptions['timeoutsMs'];
}

export async function startApiServer({
  withPublisher = true,
  nameSuffix,
  timeoutsMs,
  audience: ownAudience = 'public',
  logger = { ...silentLogger, error: (fields, message) => console.error(message, fields) },
}: ApiServerOptions = {}): Promise<ApiServer> {
  const database = await createTestDatabase();
  const kinds = createKindRegistry([...SHIPPED_KINDS, ...testKinds]);
  await registerKinds(database.url, kinds.all);
  const sql = connect(database.url, { applicationName: 'plumbline test', role: 'plumbline_server' });
  const machinery = connect(database.url, { applicationName: 'plumbline test machinery', role: 'plumbline_worker' });
  await postgresRetention(machinery).prepare();
  const stopping = new AbortController();
  const publisher = withPublisher ? publish() : undefined;
  const box = await rotatingBox(postgresCursorKeys(machinery, randomBytes), stopping.signal);
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'test', alg: 'EdDSA' };
  const app = createApi({
    store: postgresResources(sql),
    events: postgresObjectEvents(sql),
    forcedDeletions: postgresForcedDeletions(sql),
    kinds,
    cursors: createCursors(box),
    continueTokens: createContinueTokens(box),
    authenticate: authenticate({
      keys: createLocalJWKSet({ keys: [jwk] }),
      audience: ownAudience,
      issuer: ISSUER,
      blocks: noBlocks,
    }),
    version: 'test',
    ...(nameSuffix && { nameSuffix }),
    logger,
  });
  const server = await startHttpServer({
    fetch: app.fetch,
    port: 0,
    host: '127.0.0.1',
    ...(timeoutsMs && { timeoutsMs }),
  });
  return { baseUrl: server.url, audience: ownAudience, databaseUrl: database.url, token, stop };

  function publish(): Promise<void> {
    return runResidentPublisher(
      {
        outbox: postgresOutbox(machinery),
        sleep: postgresWriterSleep({
          role: 'publisher',
          databaseUrl: database.url,
          sql: machinery,
          signal: stopping.signal,
        }),
        onError: (error) => console.error(error),
      },
      stopping.signal,
    );
  }

  function token({
    roles,
    tenants,
    audience = ownAudience,
    subject = 'test',
    ttlSeconds = 600,
  }: Grant): Promise<string> {
    return new SignJWT({ roles, tenants })
      .setProtectedHeader({ alg: 'EdDSA', kid: 'test' })
      .setIssuer(ISSUER)
      .setAudience(audienceClaim(audience))
      .setSubject(subject)
      .setExpirationTime(Math.floor(Date.now() / 1000) + ttlSeconds)
      .sign(privateKey);
  }

  async function stop(): Promise<void> {
    await server.stop();
    stopping.abort();
    await publisher;
    await Promise.all([sql.end(), machinery.end()]);
    await database.drop();
  }
}
