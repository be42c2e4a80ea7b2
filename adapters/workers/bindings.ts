/** What workerd binds to a worker: texts as variables, and what it reaches. All that is missing or wrong is told at once. */

import type { DurableObjectNamespace } from 'cloudflare:workers';

/** Where a PostgreSQL is reached through a pool of the platform's. */
interface Hyperdrive {
  readonly connectionString: string;
}

export interface Bindings<Shard, Background, Relay> {
  /** Through a transaction pooler. */
  databaseUrl(): string;
  readonly watchShards: DurableObjectNamespace<Shard>;
  /** The one object of its class, for the request or object that asks. */
  background(): Background;
  readonly kafkaRelays: DurableObjectNamespace<Relay>;
}

/** One binding that is missing or wrong, and what is needed. */
export type BindingProblem = string;

/** The problems instead, when there are any. */
export function readBindings<Shard, Background, Relay>(
  env: Readonly<Record<string, unknown>>,
): Bindings<Shard, Background, Relay> | readonly BindingProblem[] {
  const { HYPERDRIVE: hyperdrive, WATCH_SHARD: watchShards, BACKGROUND: background, KAFKA_RELAY: kafkaRelays } = env;
  const problems = [
    isHyperdrive(hyperdrive) ? [] : ['HYPERDRIVE is not bound; needed: a Hyperdrive configuration of the database'],
    isNamespace(watchShards) ? [] : ['WATCH_SHARD is not bound; needed: the Durable Object class WatchShard'],
    isNamespace(background) ? [] : ['BACKGROUND is not bound; needed: the Durable Object class Background'],
    isNamespace(kafkaRelays) ? [] : ['KAFKA_RELAY is not bound; needed: the Durable Object class KafkaRelay'],
  ].flat();
  if (problems.length > 0) return problems;
  return {
    // Not to be had before there is a request.
    databaseUrl: () => (hyperdrive as Hyperdrive).connectionString,
    watchShards: watchShards as DurableObjectNamespace<Shard>,
    background: () => (background as DurableObjectNamespace<Background>).getByName('background'),
    kafkaRelays: kafkaRelays as DurableObjectNamespace<Relay>,
  };
}

function isHyperdrive(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'connectionString' in value;
}

function isNamespace(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'getByName' in value;
}
