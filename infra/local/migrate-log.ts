/** `npm run migrate-log -- --to kafka|postgres`: moves an installation's events to the other log. */

import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { LogMismatch, switchLog } from '#adapters/postgres/log-choice.ts';
import { assertSchemaIsCurrent, SchemaMismatch } from '#adapters/postgres/migrate.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { findWantedLog } from '#infra/_shared/event-log/event-log.ts';
import { withDatabase } from '#infra/_shared/database/find-database.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

const USAGE = 'usage: npm run migrate-log -- --to kafka|postgres';

await runCommand(async function migrateLog() {
  const to = readTarget(process.argv.slice(2));
  // What the brokers must be known by is checked as at a start.
  const config = readConfig({ ...process.env, EVENT_LOG: to }, { isTerminal: process.stdout.isTTY });
  const wanted = await findWantedLog(config, pino({ level: 'silent' }));
  try {
    const streams = await withDatabase(config, async (url) => {
      await assertSchemaIsCurrent(url);
      return switchLog(url, wanted);
    });
    process.stdout.write(streams === 0 ? `the log is ${to} already\n` : report(streams, to));
  } catch (error) {
    const isForOperator = error instanceof SchemaMismatch || error instanceof LogMismatch;
    throw isForOperator ? new StartError(error.message, { cause: error }) : error;
  }
});

function report(streams: number, to: string): string {
  return (
    `${streams} streams moved to the log ${to}; start the servers with EVENT_LOG=${to}. ` +
    'Those that still run with the other log end within seconds. ' +
    'Watchers that had read everything go on; others are told 410 and list again.\n'
  );
}

function readTarget(args: string[]): 'kafka' | 'postgres' {
  try {
    const { to } = parseArgs({ args, options: { to: { type: 'string' } } }).values;
    if (to === 'kafka' || to === 'postgres') return to;
  } catch (error) {
    throw new StartError(USAGE, { cause: error });
  }
  throw new StartError(USAGE);
}
