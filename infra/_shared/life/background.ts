/** What runs beside the listeners: the log's own upkeep, the publisher, retention. */

import type { Logger } from 'pino';
import type { Sql } from '#adapters/postgres/client.ts';
import { runResidentPublisher } from '#functions/publish/resident-publisher.ts';
import { runRetention } from '#functions/publish/run-retention.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import type { DatabaseAccess } from '#infra/_shared/database/database-access.ts';
import type { InstanceLog } from '#infra/_shared/event-log/event-log.ts';
import { logUpkeep } from '#infra/_shared/event-log/log-upkeep.ts';
import type { PublisherReports } from '#infra/_shared/event-log/publisher-reports.ts';

export interface BackgroundOptions {
  readonly config: Config;
  readonly access: DatabaseAccess;
  readonly eventLog: InstanceLog;
  readonly logger: Logger;
  readonly reports: PublisherReports;
  readonly pools: { readonly publish: Sql; readonly retention: Sql };
  readonly signal: AbortSignal;
}

/** Resolves when all of it has ended; never rejects. */
export async function startBackground({
  config,
  access,
  eventLog,
  logger,
  reports,
  pools,
  signal,
}: BackgroundOptions): Promise<void> {
  const publisher = {
    outbox: eventLog.outbox,
    sleep: access.sleepOf({ role: 'publisher', sql: pools.publish, signal }),
    ...reports,
  };
  await Promise.all([
    eventLog.run(signal),
    runResidentPublisher(publisher, signal),
    runRetention(
      {
        ...logUpkeep(pools.retention, config),
        onError: (error) => logger.warn({ err: error }, 'retention failed; it is tried again'),
      },
      signal,
    ),
  ]);
}
