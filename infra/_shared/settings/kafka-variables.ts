/** The environment variables that name the brokers of an event log in Kafka. */

import * as v from 'valibot';
import type { KafkaSettings, SaslMechanism } from '#adapters/kafka/client/client.ts';
import type { Compression } from '#adapters/kafka/writing/producer.ts';
import { oneOf, path } from '#infra/_shared/settings/variables.ts';

const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const satisfies readonly SaslMechanism[];
const COMPRESSIONS = ['none', 'gzip'] as const satisfies readonly Compression[];
/** Set together or not at all. */
export const SASL_VARIABLES: readonly ['KAFKA_SASL_MECHANISM', 'KAFKA_USERNAME', 'KAFKA_PASSWORD'] = [
  'KAFKA_SASL_MECHANISM',
  'KAFKA_USERNAME',
  'KAFKA_PASSWORD',
];

export const CLIENT_CERTIFICATE_RULE: string =
  'KAFKA_CLIENT_CERT_FILE and KAFKA_CLIENT_KEY_FILE are set together, with KAFKA_SSL=true, or not at all';

export interface KafkaConfig {
  /** host:port of some brokers; the others are learned from them. */
  readonly brokers: readonly string[];
  readonly ssl: boolean;
  /** Files, in PEM: by which the brokers know us (mTLS). */
  readonly clientCertificate: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly sasl: KafkaSettings['sasl'];
  readonly topicPrefix: string;
  readonly compression: Compression;
}

export interface KafkaVariables {
  readonly KAFKA_BROKERS: readonly string[] | undefined;
  readonly KAFKA_SSL: boolean;
  readonly KAFKA_CLIENT_CERT_FILE: string | undefined;
  readonly KAFKA_CLIENT_KEY_FILE: string | undefined;
  readonly KAFKA_SASL_MECHANISM: SaslMechanism | undefined;
  readonly KAFKA_USERNAME: string | undefined;
  readonly KAFKA_PASSWORD: string | undefined;
  readonly KAFKA_TOPIC_PREFIX: string;
  readonly KAFKA_COMPRESSION: Compression;
}

type Entries = { readonly [Name in keyof KafkaVariables]: v.GenericSchema<string | undefined, KafkaVariables[Name]> };

/** Entries of a `v.object`. */
export function kafkaVariables(): Entries {
  return {
    KAFKA_BROKERS: v.optional(
      v.pipe(
        v.string(),
        v.transform((list) => list.split(',').map((broker) => broker.trim())),
        v.check(
          (list) => list.every(isBroker),
          'host:port of one or more brokers, separated by commas; IPv6 by a host name',
        ),
      ),
    ),
    KAFKA_SSL: v.optional(
      v.pipe(
        oneOf(['true', 'false']),
        v.transform((value) => value === 'true'),
      ),
      'false',
    ),
    KAFKA_CLIENT_CERT_FILE: v.optional(path("a file's path")),
    KAFKA_CLIENT_KEY_FILE: v.optional(path("a file's path")),
    KAFKA_SASL_MECHANISM: v.optional(oneOf(SASL_MECHANISMS)),
    KAFKA_USERNAME: v.optional(v.string()),
    KAFKA_PASSWORD: v.optional(v.string()),
    KAFKA_TOPIC_PREFIX: v.optional(
      v.pipe(v.string(), v.regex(/^[a-zA-Z0-9._-]{1,100}$/, 'up to 100 of: letters, digits, . _ -')),
      'plumbline.events.',
    ),
    KAFKA_COMPRESSION: v.optional(oneOf(COMPRESSIONS), 'none'),
  };
}

export function kafkaConfig(variables: KafkaVariables): KafkaConfig {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_USERNAME: username, KAFKA_PASSWORD: password } = variables;
  const { KAFKA_CLIENT_CERT_FILE: certFile, KAFKA_CLIENT_KEY_FILE: keyFile } = variables;
  const hasSasl = mechanism !== undefined && username !== undefined && password !== undefined;
  return {
    brokers: variables.KAFKA_BROKERS ?? [],
    ssl: variables.KAFKA_SSL,
    clientCertificate: certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : undefined,
    sasl: hasSasl ? { mechanism, username, password } : undefined,
    topicPrefix: variables.KAFKA_TOPIC_PREFIX,
    compression: variables.KAFKA_COMPRESSION,
  };
}

/** Whether `CLIENT_CERTIFICATE_RULE` is kept. */
export function isCertificateWhole(
  given: Pick<KafkaVariables, 'KAFKA_SSL' | 'KAFKA_CLIENT_CERT_FILE' | 'KAFKA_CLIENT_KEY_FILE'>,
): boolean {
  const hasCertificate = given.KAFKA_CLIENT_CERT_FILE !== undefined;
  const hasKey = given.KAFKA_CLIENT_KEY_FILE !== undefined;
  return hasCertificate === hasKey && (!hasCertificate || given.KAFKA_SSL);
}

function isBroker(text: string): boolean {
  const [, port] = /^[^\s:/[\]]+:(\d{1,5})$/.exec(text) ?? [];
  return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535;
}
