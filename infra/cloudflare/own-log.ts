/** The event log of an object of this worker: the one that the installation has, or none. */

import { assertChosen, LogMismatch, readLogChoice } from '#adapters/postgres/log-choice.ts';
import { StatusError } from '#core/status-error.ts';
import { type InstanceLog, type InstanceLogOptions, openEventLog } from '#infra/local/event-log.ts';

/** @throws {StatusError} ServiceUnavailable when the events of this installation lie in another log than EVENT_LOG. */
export async function openOwnLog(options: InstanceLogOptions): Promise<InstanceLog> {
  try {
    assertChosen(await readLogChoice(options.pools.watch), options.config.kafka ? 'kafka' : 'postgres');
  } catch (error) {
    throw error instanceof LogMismatch ? new StatusError('ServiceUnavailable', error.message, { cause: error }) : error;
  }
  return openEventLog(options);
}
