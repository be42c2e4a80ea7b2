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
import type { EventLog } from '#core/ports/event-log.ts';
import { createKindRegistry } from '#core/kind-registry.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import { createWatch } from '#functions/watch/handler.ts';
import { createHub, type HubOptions } from '#functions/watch/hub.ts';
import { audienceClaim, authenticate } from '#http/authenticate.ts';
import testKinds from '#test/http/kinds.ts';
import { noBlocks } from '#test/support/no-blocks.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

export interface WatchServer {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  /** Those of all servers of this process. */
  readonly cursors: Cursors;
  /** Streams that are followed live, each as often as it is. */
  readonly tails: readonly bigint[];
  /** What it asked the database so far. */
  readonly questions: Questions;
  /** @param subject whose groups it opens. @default 'test' */
  token(tenants: TenantSet, subject?: string): Promise<string>;
  /** A stream has new events; without one, any may have. */
  tellOfEvents(stream?: bigint): void;
  /** Streams were opened or closed. */
  tellOfStreams(): void;
  stop(): Promise<void>;
}

export interface Questions {
  readonly lists: Question;
  readonly ranges: Question;
  readonly reads: Question;
}

/** How often it was asked, and how many times at once at most. */
export interface Question {
  readonly times: number;
  readonly atOnce: number;
}

export interface WatchServerOptions extends HubOptions {
  /** Another one, which hears of its events by itself. */
  readonly log?: EventLog;
}

const ISSUER = 'plumbline/test';
const keys = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'test', alg: 'EdDSA' };
const box = secretBox([{ id: 0, key: crypto.getRandomValues(new Uint8Array(32)) }]);
const cursors = createCursors(box);
const ackTokens = createAckTokens(box);

export async function startWatchServer(
  sql: Sql,
  { log: otherLog, ...options }: WatchServerOptions = {},
): Promise<WatchServer> {
  const news = { ofEvents: (_stream?: bigint): void => undefined, ofStreams: [] as (() => void)[] };
  const postgresLog = postgresEventLog(sql);
  const directory = postgresStreams(sql);
  const [lists, ranges, reads] = [counted(directory.list), counted(postgresLog.ranges), counted(postgresLog.read)];
  const tails: bigint[] = [];
  const tail = tailing(postgresLog, (tell) => (news.ofEvents = tell));
  const log: EventLog = otherLog ?? {
    ranges: ranges.ask,
    read: reads.ask,
    async *tail(stream, after, signal) {
      tails.push(stream);
      try {
        yield* tail(stream, after, signal);
      } finally {
        tails.splice(tails.indexOf(stream), 1);
      }
    },
  };
  const streams = { list: lists.ask, onChange: (tell: () => void) => void news.ofStreams.push(tell) };
  const groups = postgresWatchGroups(sql);
  const ignore = (): void => undefined;
  const hub = createHub(
    {
      log,
      streams,
      cursors,
      groups,
      ackTokens,
      blocks: noBlocks,
      onRedelivery: ignore,
      onDeadLettersFull: () => undefined,
      onFilterError: ignore,
      onIsolationViolation: ignore,
      onError: ignore,
      onOpen: ignore,
      onEnd: ignore,
    },
    options,
  );
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
    authenticate: authenticate({
      keys: createLocalJWKSet({ keys: [jwk] }),
      audience: 'public',
      issuer: ISSUER,
      blocks: noBlocks,
    }),
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
    questions: { lists, ranges, reads },
    token,
    tails,
    tellOfEvents: (stream) => news.ofEvents(stream),
    tellOfStreams() {
      for (const tell of news.ofStreams) tell();
    },
    async stop() {
      await hub.stop();
      await server.stop();
    },
  };
}

interface Counted<Args extends readonly unknown[], Answer> extends Question {
  readonly ask: (...args: Args) => Promise<Answer>;
}

function counted<Args extends readonly unknown[], Answer>(
  call: (...args: Args) => Promise<Answer>,
): Counted<Args, Answer> {
  let running = 0;
  const count = { times: 0, atOnce: 0, ask };
  return count;

  async function ask(...args: Args): Promise<Answer> {
    count.times += 1;
    running += 1;
    count.atOnce = Math.max(count.atOnce, running);
    try {
      return await call(...args);
    } finally {
      running -= 1;
    }
  }
}

function token(tenants: TenantSet, subject: string = 'test'): Promise<string> {
  return new SignJWT({ roles: ['viewer'], tenants })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'test' })
    .setIssuer(ISSUER)
    .setAudience(audienceClaim('public'))
    .setSubject(subject)
    .setExpirationTime('10m')
    .sign(keys.privateKey);
}
