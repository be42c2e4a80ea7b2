/** `npm run publish`: drains the outbox once, for cron. Any number of them, and of resident publishers, may run at once. */

import { randomUUID } from 'node:crypto';
import { connect } from '#adapters/postgres/client.ts';
import { assertSchemaIsCurrent, SchemaMismatch } from '#adapters/postgres/migrate.ts';
import { postgresLeases } from '#adapters/postgres/leases.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { maintainLog } from '#functions/publish/run-retention.ts';
import { readConfig } from '#infra/local/config.ts';
import { runCommand } from '#infra/local/command.ts';
import { findDatabaseUrl } from '#infra/local/find-database.ts';
import { messageOf, StartError } from '#infra/local/start-error.ts';

await runCommand(async function publish() {
  const config = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  const databaseUrl = await findDatabaseUrl(config);
  await assertSchemaIsCurrent(databaseUrl).catch((error: unknown) => {
    throw error instanceof SchemaMismatch ? new StartError(error.message, { cause: error }) : error;
  });
  const sql = connect(databaseUrl, {
    applicationName: 'plumbline publish',
    maxConnections: 4,
    role: 'plumbline_server',
  });
  try {
    await maintainLog({
      retention: postgresRetention(sql),
      leases: postgresLeases(sql, randomUUID()),
      olderThanMs: config.eventRetentionHours * 3_600_000,
    });
    const published = await publishOnce({
      outbox: postgresOutbox(sql),
      onQuarantined(stream, reason) {
        process.stderr.write(`stream ${stream} is held: ${reason}\n`);
        process.exitCode = 1;
      },
      onStreamError(stream, error) {
        process.stderr.write(`stream ${stream} cannot be published: ${messageOf(error)}\n`);
        process.exitCode = 1;
      },
    });
    process.stdout.write(`published ${published} events\n`);
  } finally {
    await sql.end({ timeout: 1 });
  }
});
