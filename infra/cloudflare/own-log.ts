/**
 * The event log of an object of this worker: the one that the installation has, or none. Other hosts look before they
 * start; a worker starts before it can ask anybody.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import { assertChosen, assertSameCluster, LogMismatch, readLogChoice } from '#adapters/postgres/log-choice.ts';
import type { Logger } from '#core/ports/logger.ts';
import { StatusError } from '#core/status-error.ts';
import { brokerSockets } from '#infra/cloudflare/broker-sockets.ts';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';
import { findWantedLog, type InstanceLog, openEventLog } from '#infra/local/event-log.ts';
import type { PublisherReports } from '#infra/local/publisher-reports.ts';
import { StartError } from '#infra/local/start-error.ts';

export interface OwnLogOptions {
  readonly edge: EdgeConfig;
  readonly logger: Logger;
  /** Sees all tenants. */
  readonly sql: Sql;
  readonly reports: PublisherReports;
  /** The name of the object. */
  readonly owner: string;
}

export interface OwnLog extends InstanceLog {
  /** @throws {StatusError} ServiceUnavailable with what is wrong with the brokers; once they were right, they are believed. */
  assertBrokers(): Promise<void>;
}

/** The brokers of this worker's variables were found to be those of the installation. */
let areRight = false;

/** @throws {StatusError} ServiceUnavailable when the events of this installation lie in another log than EVENT_LOG. */
export async function openOwnLog({ edge, logger, sql, reports, owner }: OwnLogOptions): Promise<OwnLog> {
  const { config } = edge;
  await told(async () => assertChosen(await readLogChoice(sql), config.kafka ? 'kafka' : 'postgres'));
  const openSocket = brokerSockets(edge.kafkaRelays, owner);
  const pools = { watch: sql, publish: sql, ops: sql };
  const log = await openEventLog({ config, logger, pools, reports, openSocket, beforeChanges: assertBrokers });
  return { ...log, assertBrokers };

  async function assertBrokers(): Promise<void> {
    if (areRight) return;
    await told(async () =>
      assertSameCluster(await findWantedLog(config, logger, openSocket), await readLogChoice(sql)),
    );
    areRight = true;
  }
}

async function told(check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (error instanceof StatusError) throw error;
    const isTold = error instanceof LogMismatch || error instanceof StartError;
    throw isTold ? new StatusError('ServiceUnavailable', error.message, { cause: error }) : error;
  }
}
