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
import { type Config, readConfig } from '#infra/local/config.ts';
import { type IssuerConfig, ISSUER_VARIABLES } from '#infra/local/issuer-variables.ts';
import { messageOf, StartError } from '#infra/local/start-error.ts';

/** Each is a thread and 128 MB. */
const MOST_SHARDS = 1_000;

/** Its sockets have no place for one: brokers would see a client without, and workerd would not say so. */
const NO_CLIENT_CERTIFICATES =
  'KAFKA_CLIENT_CERT_FILE is set, and sockets of workerd send no client certificate; let the brokers take a login ' +
  'over TLS: KAFKA_SASL_MECHANISM, KAFKA_USERNAME, KAFKA_PASSWORD';

export interface EdgeConfig extends Bindings<WatchShard, Background, KafkaRelay> {
  readonly config: Config;
  readonly issuer: IssuerConfig;
  /** With its port, where that is not 443: what is asked of it is for controllers. */
  readonly controllerHost: string | undefined;
  /** What is asked of it is for operators. */
  readonly opsHost: string | undefined;
  readonly shardCount: number;
}

/** @throws {StartError} with one line per binding that is missing or wrong. */
export function readEdgeConfig(env: Readonly<Record<string, unknown>>): EdgeConfig {
  const bindings = readBindings<WatchShard, Background, KafkaRelay>(env);
  const texts = Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const variables = Object.fromEntries(texts);
  const own = v.safeParse(OwnVariables, variables);
  const shared = readShared(variables);
  if ('length' in bindings || 'length' in shared || !own.success) {
    throw new StartError(
      [
        ...('length' in bindings ? bindings : []),
        ...(own.issues ?? []).map(describe),
        ...('length' in shared ? shared : []),
      ].join('\n'),
    );
  }
  const { CONTROLLER_HOST, OPS_HOST, WATCH_SHARDS } = own.output;
  return {
    ...bindings,
    ...shared,
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

const OwnVariables = v.object({
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

/** What all hosts read; or what is wrong with it, for this one too. */
function readShared(
  variables: Readonly<Record<string, string>>,
): Pick<EdgeConfig, 'config' | 'issuer'> | readonly string[] {
  try {
    const config = readConfig(variables, { isTerminal: false });
    const { kafka, issuer } = config;
    const hasClientCertificate = kafka?.clientCertificate !== undefined;
    if (issuer && !hasClientCertificate) return { config, issuer };
    return [
      ...(hasClientCertificate ? [NO_CLIENT_CERTIFICATES] : []),
      // There is no development key to fall back to.
      ...(issuer ? [] : ISSUER_VARIABLES.map((name) => `${name} is not bound`)),
    ];
  } catch (error) {
    return [messageOf(error)];
  }
}

function describe({ path, message, input }: v.BaseIssue<unknown>): string {
  return `${String(path?.[0]?.key)} is ${JSON.stringify(input)}; allowed: ${message}`;
}
