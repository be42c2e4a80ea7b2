/**
 * The way to the brokers. kafkajs is used by what this folder knows of version 2.2.4, and leaves it nowhere.
 *
 * A client is cheap (some 10 ms to connect), and an old one can be past help: it never leaves a broker that hangs, and one
 * deleted topic makes all its calls fail. So whoever is in doubt ends it and takes another.
 */

import { Kafka, type KafkaConfig, type LogEntry, logLevel } from 'kafkajs';
import { fixKafkajs } from '#adapters/kafka/fixes/kafkajs-fixes.ts';
import type { OpenSocket, Sockets } from '#adapters/kafka/client/sockets.ts';
import type { Logger } from '#core/ports/logger.ts';

export type SaslMechanism = 'plain' | 'scram-sha-256' | 'scram-sha-512';

export interface KafkaSettings {
  /** `host:port` of some of the brokers; they tell of the others. */
  readonly brokers: readonly string[];
  /** TLS, by the certificate authorities that Node trusts; with a certificate of our own (mTLS), in PEM. */
  readonly ssl: boolean | { readonly cert: string; readonly key: string };
  readonly sasl?:
    | {
        readonly mechanism: SaslMechanism;
        readonly username: string;
        readonly password: string;
      }
    | undefined;
  /** What the brokers know us by, in their logs and quotas. */
  readonly clientId: string;
  /** How connections are made. @default over TCP, and TLS, of Node's */
  readonly openSocket?: OpenSocket | undefined;
}

export interface ClientOptions {
  /** Its connections, to be able to break them. @default its own, which nobody can */
  readonly sockets?: Sockets;
  /** How long a request waits for its answer. @default 15,000 */
  readonly requestTimeoutMs?: number;
  /** Until a connection is made. @default 10,000 */
  readonly connectionTimeoutMs?: number;
  /** How often what can pass is tried again, after 100, 200, 400 … ms. @default 4 */
  readonly retries?: number;
}

/** A client that is not connected yet. Its list of brokers is in another order each time: one of them may hang. */
export function kafkaClient(settings: KafkaSettings, logger: Logger, options: ClientOptions = {}): Kafka {
  fixKafkajs();
  const { sockets, requestTimeoutMs = 15_000, connectionTimeoutMs = 10_000, retries = 4 } = options;
  return new Kafka({
    clientId: settings.clientId,
    brokers: shuffled(settings.brokers),
    ssl: settings.ssl,
    ...(settings.sasl && { sasl: settings.sasl as NonNullable<KafkaConfig['sasl']> }),
    ...(sockets && { socketFactory: sockets.open }),
    connectionTimeout: connectionTimeoutMs,
    authenticationTimeout: 10_000,
    requestTimeout: requestTimeoutMs,
    // All of them: what is left out depends on NODE_ENV.
    retry: { retries, initialRetryTime: 100, maxRetryTime: 1_000, factor: 0.2, multiplier: 2 },
    logLevel: logLevel.ERROR,
    logCreator: () => (entry) => relay(logger, entry),
  });
}

/** What kafkajs calls an error is one that it tries again; the last one is thrown, and told by whoever catches it. */
function relay(logger: Logger, { namespace, log }: LogEntry): void {
  const { message, broker, error, retryCount, retryTime } = log as Record<string, unknown>;
  logger.debug({ namespace, broker, error, retryCount, retryTimeMs: retryTime }, `kafkajs: ${String(message)}`);
}

/** In another order each time. */
export function shuffled(list: readonly string[]): string[] {
  return list
    .map((item) => ({ item, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
