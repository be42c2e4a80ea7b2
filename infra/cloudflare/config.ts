/**
 * Bindings to configuration: the variables of every other host, and what only this one needs. All that is wrong is told
 * at once, when the worker starts.
 */

import * as v from 'valibot';
import { type Bindings, readBindings } from '#adapters/workers/bindings.ts';
import type { Audience } from '#core/identity.ts';
import type { Background } from '#infra/cloudflare/background.ts';
import type { KafkaRelay } from '#infra/cloudflare/kafka-relay.ts';
import type { WatchShard } from '#infra/cloudflare/watch-shard.ts';
import { type Config, type ConfigOptions, readConfig } from '#infra/_shared/settings/config.ts';
import { type IssuerConfig, ISSUER_VARIABLES } from '#infra/_shared/settings/issuer-variables.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';
import { integer } from '#infra/_shared/settings/variables.ts';

/** Each is a thread and 128 MB. */
const MOST_SHARDS = 1_000;
const MOST_AT_ONCE = 10_000;

/** Their sockets have no place for one: brokers would see a client without, and workerd would not say so. */
const NO_CLIENT_CERTIFICATES =
  'nothing, for sockets of workerd send no client certificate; let the brokers take a login over TLS: ' +
  'KAFKA_SASL_MECHANISM, KAFKA_USERNAME, KAFKA_PASSWORD';
/** Variables of other hosts that would be ignored. */
const OF_OTHER_HOSTS = {
  CURSOR_KEYS_FILE: refused('nothing, for a worker has no files; CURSOR_KEYS has the keys themselves'),
  KAFKA_CLIENT_CERT_FILE: refused(NO_CLIENT_CERTIFICATES),
  KAFKA_CLIENT_KEY_FILE: refused(NO_CLIENT_CERTIFICATES),
};
/** On one machine addresses are told apart by their ports. */
const GIVEN_BY_PORTS = {
  CONTROLLER_HOST: refused('nothing, for npm run edge tells controllers by their port: HOST and CONTROLLER_PORT'),
  OPS_HOST: refused('nothing, for npm run edge tells operators by their port: HOST and OPS_PORT'),
};

export interface EdgeConfig extends Bindings<WatchShard, Background, KafkaRelay> {
  readonly config: Config;
  readonly issuer: IssuerConfig;
  /** With its port, where that is not 443: what is asked of it is for controllers. */
  readonly controllerHost: string | undefined;
  /** What is asked of it is for operators. */
  readonly opsHost: string | undefined;
  readonly shardCount: number;
  /** Of a tenant, or of a caller, to each isolate. */
  readonly requestsAtOnce: number;
}

export type LocalEdgeConfig = Pick<EdgeConfig, 'config' | 'shardCount' | 'requestsAtOnce'>;

/** @throws {StartError} with one line per binding that is missing or wrong. */
export function readEdgeConfig(env: Readonly<Record<string, unknown>>): EdgeConfig {
  const variables = readVariables(env);
  const bindings = readBindings<WatchShard, Background, KafkaRelay>(env);
  const own = v.safeParse(OwnVariables, variables);
  const shared = readShared(variables, { isTerminal: false });
  // There is no development key to fall back to.
  const hasIssuer = ISSUER_VARIABLES.some((name) => variables[name] !== undefined);
  if ('length' in bindings || 'length' in shared || !own.success || !shared.issuer) {
    const problems = [
      'length' in bindings ? bindings : [],
      hasIssuer ? [] : ISSUER_VARIABLES.map((name) => `${name} is not bound`),
      own.issues?.map(describe) ?? [],
      'length' in shared ? shared : [],
    ];
    throw new StartError(problems.flat().join('\n'));
  }
  const { CONTROLLER_HOST, OPS_HOST, WATCH_SHARDS, TENANT_REQUESTS_AT_ONCE } = own.output;
  return {
    ...bindings,
    config: shared,
    issuer: shared.issuer,
    controllerHost: CONTROLLER_HOST,
    opsHost: OPS_HOST,
    shardCount: WATCH_SHARDS,
    requestsAtOnce: TENANT_REQUESTS_AT_ONCE,
  };
}

/**
 * The same variables where `npm run edge` gives the bindings: what it passes on to the worker is taken there.
 * @throws {StartError} with one line per variable that is wrong.
 */
export function readLocalEdgeConfig(
  environment: Readonly<Record<string, string | undefined>>,
  options: ConfigOptions,
): LocalEdgeConfig {
  const variables = readVariables(environment);
  const own = v.safeParse(LocalVariables, variables);
  const shared = readShared(variables, options);
  if ('length' in shared || !own.success) {
    throw new StartError([...(own.issues?.map(describe) ?? []), ...('length' in shared ? shared : [])].join('\n'));
  }
  const { WATCH_SHARDS, TENANT_REQUESTS_AT_ONCE } = own.output;
  return { config: shared, shardCount: WATCH_SHARDS, requestsAtOnce: TENANT_REQUESTS_AT_ONCE };
}

/** Whose tokens are taken at this address. */
export function audienceAt(url: string, { controllerHost }: EdgeConfig): Audience {
  return controllerHost !== undefined && new URL(url).host === controllerHost ? 'private' : 'public';
}

/** As it stands in the URL of a request: in lower case, without the port that goes without saying. */
const host = v.pipe(
  v.string(),
  v.check((text) => hostOf(text) === text, 'a host name in lower case, with its port where that is not 443'),
);

const CHECKED_BY_BOTH = {
  WATCH_SHARDS: v.optional(integer(1, MOST_SHARDS, `1 to ${MOST_SHARDS}`), '1'),
  // At 33 ms each they would be a thousand a second, and one thread answers no more than 150.
  TENANT_REQUESTS_AT_ONCE: v.optional(integer(1, MOST_AT_ONCE, `1 to ${MOST_AT_ONCE}`), '32'),
  ...OF_OTHER_HOSTS,
};

const OwnVariables = v.pipe(
  v.object({ CONTROLLER_HOST: v.optional(host), OPS_HOST: v.optional(host), ...CHECKED_BY_BOTH }),
  v.partialCheck(
    [['CONTROLLER_HOST'], ['OPS_HOST']],
    (given) => given.OPS_HOST === undefined || given.OPS_HOST !== given.CONTROLLER_HOST,
    'CONTROLLER_HOST and OPS_HOST are the same; allowed: two that differ',
  ),
);

const LocalVariables = v.object({ ...GIVEN_BY_PORTS, ...CHECKED_BY_BOTH });

function refused(why: string): v.GenericSchema<string | undefined, undefined> {
  return v.optional(v.never(why));
}

function hostOf(text: string): string | undefined {
  return URL.canParse(`https://${text}`) ? new URL(`https://${text}`).host : undefined;
}

/** Those that are empty count as unset; numbers and truth values of a wrangler.jsonc as their texts. */
function readVariables(env: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const texts = Object.entries(env).filter(
    ([, value]) => value !== '' && ['string', 'number', 'boolean'].includes(typeof value),
  );
  return Object.fromEntries(texts.map(([name, value]) => [name, String(value)]));
}

/** What all hosts read, without what is refused anyway; or what is wrong with it. */
function readShared(variables: Readonly<Record<string, string>>, options: ConfigOptions): Config | readonly string[] {
  const taken = Object.entries(variables).filter(([name]) => !Object.hasOwn(OF_OTHER_HOSTS, name));
  try {
    return readConfig(Object.fromEntries(taken), options);
  } catch (error) {
    return [messageOf(error)];
  }
}

function describe({ path, message }: v.BaseIssue<unknown>): string {
  const [item] = path ?? [];
  return item ? `${String(item.key)} is ${JSON.stringify(item.value)}; allowed: ${message}` : message;
}
