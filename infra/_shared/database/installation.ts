/**
 * What an installation's database must know before its servers work: which log its events lie in, which kinds there are,
 * how many objects a tenant may have. Who owns the schema writes it; a login that may only serve finds it there.
 */

import type { Logger } from 'pino';
import { assertKindsAreRegistered, KindMismatch, registerKinds } from '#adapters/postgres/kinds.ts';
import { assertLog, chooseLog, LogMismatch, type WantedLog } from '#adapters/postgres/log-choice.ts';
import { setObjectLimit } from '#adapters/postgres/quotas.ts';
import { mayOwnSchema } from '#adapters/postgres/schema-owner.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { findWantedLog } from '#infra/_shared/event-log/event-log.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

export interface Installation {
  /** @throws {StartError} when its events lie elsewhere, or the brokers cannot be used. */
  haveLog(config: Config, logger: Logger): Promise<void>;
  /** @throws {StartError} when these kinds do not fit to what the database knows. */
  haveKinds(kinds: KindRegistry): Promise<void>;
  haveObjectLimit(objects: number): Promise<void>;
}

/** Writes what is wanted. */
export function ownInstallation(databaseUrl: string): Installation {
  return {
    haveLog: withWantedLog((wanted) => chooseLog(databaseUrl, wanted)),
    haveKinds: ({ all }) => told(registerKinds(databaseUrl, all)),
    haveObjectLimit: (objects) => setObjectLimit(databaseUrl, objects),
  };
}

/** Changes nothing: what is not there as it is wanted refuses the start. The limit of objects is what it is. */
export function givenInstallation(databaseUrl: string): Installation {
  return {
    haveLog: withWantedLog((wanted) => assertLog(databaseUrl, wanted)),
    haveKinds: ({ all }) => told(assertKindsAreRegistered(databaseUrl, all)),
    haveObjectLimit: async () => undefined,
  };
}

/** As far as the login's rights go. */
export async function findInstallation(databaseUrl: string): Promise<Installation> {
  return (await mayOwnSchema(databaseUrl)) ? ownInstallation(databaseUrl) : givenInstallation(databaseUrl);
}

function withWantedLog(have: (wanted: WantedLog) => Promise<void>): Installation['haveLog'] {
  return async (config, logger) => told(have(await findWantedLog(config, logger)));
}

async function told(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const isMismatch = error instanceof LogMismatch || error instanceof KindMismatch;
    throw isMismatch ? new StartError(error.message, { cause: error }) : error;
  }
}
