/**
 * The event log of an object of this worker: the one that the installation has, or none. Other hosts look before they
 * start; a worker starts before it can ask anybody.
 */

import { serving, type Sql } from '#adapters/postgres/client.ts';
import { assertChosen, assertSameCluster, LogMismatch, readLogChoice } from '#adapters/postgres/log-choice.ts';
import type { Logger } from '#core/ports/logger.ts';
import { StatusError } from '#core/status-error.ts';
import { brokerSockets } from '#infra/cloudflare/broker-sockets.ts';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';
import { findWantedLog, type InstanceLog, openEventLog } from '#infra/_shared/event-log/event-log.ts';
import type { PublisherReports } from '#infra/_shared/event-log/publisher-reports.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

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
  /** False once the installation has another log than when this one was opened: it is of no use any more. */
  isCurrent(): Promise<boolean>;
}

/** The brokers of this worker's variables were found to be those of the installation. */
let areRight = false;

/** @throws {StatusError} ServiceUnavailable when the events of this installation lie in another log than EVENT_LOG. */
export async function openOwnLog({ edge, logger, sql, reports, owner }: OwnLogOptions): Promise<OwnLog> {
  const { config } = edge;
  const wanted = config.kafka ? 'kafka' : 'postgres';
  const choice = await readLogChoice(sql);
  await told(async () => assertChosen(choice, wanted));
  const openSocket = brokerSockets(edge.kafkaRelays, owner);
  const pools = { watch: serving(sql), publish: sql, ops: sql };
  const log = await openEventLog({ config, logger, pools, reports, openSocket, beforeChanges: assertBrokers });
  return { ...log, assertBrokers, isCurrent };

  async function assertBrokers(): Promise<void> {
    if (areRight) return;
    await told(async () =>
      assertSameCluster(await findWantedLog(config, logger, openSocket), await readLogChoice(sql)),
    );
    areRight = true;
  }

  async function isCurrent(): Promise<boolean> {
    const now = await readLogChoice(sql).catch(() => choice);
    // There and back again, it is in other topics.
    const isSame = now.log === choice.log && now.installation === choice.installation;
    if (!isSame)
      logger.error({}, `the events of this installation lie in the log "${now.log}" now; it must be EVENT_LOG`);
    return isSame;
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
