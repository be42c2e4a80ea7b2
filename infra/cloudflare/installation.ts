/** What all parts of this worker share, made when an isolate starts. What is missing or wrong keeps it from starting. */

import { env } from 'cloudflare:workers';
import type { JWTVerifyGetKey } from 'jose';
import { onDemandKeys } from '#adapters/jwks/on-demand-keys.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { consoleLogger } from '#adapters/workers/console-logger.ts';
import { sparingLogger } from '#adapters/workers/sparing-logger.ts';
import { defineKind, type Kind, type KindDefinition } from '#core/kind.ts';
import { createKindRegistry, type KindRegistry } from '#core/kind-registry.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';
import { type EdgeConfig, readEdgeConfig } from '#infra/cloudflare/config.ts';
import { createTally, type IsolateTally } from '#infra/cloudflare/tally.ts';
import { shippedKinds } from '#infra/_shared/kinds/shipped-kinds.ts';

export const edge: EdgeConfig = readEdgeConfig(env);

export const logger: Logger = consoleLogger(edge.config.logLevel);

/** Of what callers ask for. */
export const requestLogger: Logger = sparingLogger(logger);

/** For requests; a shard follows them itself. */
export const tokenKeys: JWTVerifyGetKey = onDemandKeys({
  url: edge.issuer.jwksUrl,
  onError: (error) => logger.warn({ err: error }, 'keys of tokens cannot be read; those that there are go on'),
});

export const tally: IsolateTally = createTally((told) => edge.background().count(told));

let own: readonly Kind[] = [];

/** Adds a team's kinds to the shipped ones: called by the module that is deployed, before there are requests. */
export function serveKinds(kinds: readonly Kind[]): void {
  // A kind is a definition too: defining it again checks what JavaScript could not.
  own = kinds.map((kind) => defineKind(kind as unknown as KindDefinition<object, object>));
}

/** The kinds that are served; what their controllers act on is reached through this. */
export function kindsOver(sql: Sql, topicAdmin?: TopicAdmin): KindRegistry {
  // A database behind a pooler has no room for those that are managed: they lie on servers that were named.
  const config = { ...edge.config, databaseUrl: edge.databaseUrl() };
  return createKindRegistry([...shippedKinds({ config, databaseUrl: edge.databaseUrl(), sql, topicAdmin }), ...own]);
}
