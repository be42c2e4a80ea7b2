/**
 * Bindings to configuration: the variables of every other host, and what only this one needs. All that is wrong is told
 * at once, when the worker starts.
 */

import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import * as v from 'valibot';
import { type Bindings, readBindings } from '#adapters/workers/bindings.ts';
import type { Audience } from '#core/identity.ts';
import type { Background } from '#infra/cloudflare/background.ts';
import type { WatchShard } from '#infra/cloudflare/watch-shard.ts';
import { type Config, readConfig } from '#infra/local/config.ts';
import { messageOf, StartError } from '#infra/local/start-error.ts';

/** Each is a thread and 128 MB. */
const MOST_SHARDS = 1_000;

export interface EdgeConfig extends Bindings<WatchShard, Background> {
  readonly config: Config;
  readonly keys: JWTVerifyGetKey;
  readonly issuer: string;
  /** With its port, where that is not 443: what is asked of it is for controllers. */
  readonly controllerHost: string | undefined;
  /** What is asked of it is for operators. */
  readonly opsHost: string | undefined;
  readonly shardCount: number;
}

/** @throws {StartError} with one line per binding that is missing or wrong. */
export function readEdgeConfig(env: Readonly<Record<string, unknown>>): EdgeConfig {
  const bindings = readBindings<WatchShard, Background>(env);
  const texts = Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const variables = Object.fromEntries(texts);
  const own = v.safeParse(OwnVariables, variables);
  const problems = [
    ...('length' in bindings ? bindings : []),
    ...(own.issues ?? []).map(describe),
    ...problemsOf(variables),
  ];
  if (problems.length > 0 || 'length' in bindings || !own.success) throw new StartError(problems.join('\n'));
  const { JWKS, JWT_ISSUER, CONTROLLER_HOST, OPS_HOST, WATCH_SHARDS } = own.output;
  return {
    ...bindings,
    config: readConfig(variables, { isTerminal: false }),
    keys: createLocalJWKSet(JWKS),
    issuer: JWT_ISSUER,
    controllerHost: CONTROLLER_HOST,
    opsHost: OPS_HOST,
    shardCount: WATCH_SHARDS,
  };
}

/** Whose tokens are taken at this address. */
export function audienceAt(url: string, { controllerHost }: EdgeConfig): Audience {
  return controllerHost !== undefined && new URL(url).host === controllerHost ? 'private' : 'public';
}

const host = v.pipe(v.string(), v.regex(/^[^\s/]+$/, 'a host name, with its port where that is not 443'));
const keySet = v.object({ keys: v.pipe(v.array(v.looseObject({ kty: v.string() })), v.minLength(1)) });

const OwnVariables = v.object({
  JWKS: v.pipe(v.string(), v.rawTransform(parseKeySet)),
  JWT_ISSUER: v.pipe(v.string(), v.minLength(1, 'the claim "iss" of tokens')),
  CONTROLLER_HOST: v.optional(host),
  OPS_HOST: v.optional(host),
  WATCH_SHARDS: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d{1,4}$/, `1 to ${MOST_SHARDS}`),
      v.transform(Number),
      v.minValue(1),
      v.maxValue(MOST_SHARDS),
    ),
    '1',
  ),
});

function parseKeySet({ dataset, addIssue, NEVER }: v.RawTransformContext<string>): JSONWebKeySet {
  try {
    return v.parse(keySet, JSON.parse(dataset.value)) as JSONWebKeySet;
  } catch {
    addIssue({ message: 'a JSON Web Key Set with the public keys that tokens are checked with' });
    return NEVER;
  }
}

function problemsOf(variables: Readonly<Record<string, string>>): readonly string[] {
  try {
    const { kafka, issuer } = readConfig(variables, { isTerminal: false });
    return [
      ...(kafka ? ['EVENT_LOG is "kafka"; allowed on workerd: postgres'] : []),
      ...(issuer
        ? ['TOKEN_ISSUER is bound; on workerd the keys of tokens are bound themselves: JWKS and JWT_ISSUER']
        : []),
    ];
  } catch (error) {
    return [messageOf(error)];
  }
}

function describe({ path, message, input }: v.BaseIssue<unknown>): string {
  const name = String(path?.[0]?.key);
  return input === undefined ? `${name} is not bound` : `${name} is ${JSON.stringify(input)}; allowed: ${message}`;
}
