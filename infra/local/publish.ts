/** `npm run publish`: drains the outbox once, for cron. Any number of them, and of resident publishers, may run at once. */

import { destination, pino } from 'pino';
import { readOutboxState } from '#adapters/postgres/outbox-state.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { maintainLog } from '#functions/publish/run-retention.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { type InstanceLog, openEventLog } from '#infra/_shared/event-log/event-log.ts';
import { findDatabase } from '#infra/_shared/database/find-database.ts';
import { findInstallation } from '#infra/_shared/database/installation.ts';
import { logUpkeep } from '#infra/_shared/event-log/log-upkeep.ts';
import { assertOwnSchema } from '#infra/_shared/database/own-schema.ts';
import { messageOf } from '#infra/_shared/life/start-error.ts';

/** Of a run by cron, which comes each minute: what is left then is the next one's. The batch in flight is finished. */
const BUDGET_MS = 50_000;

await runCommand(async function publish() {
  const config = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  const { url, access: openAccess } = await findDatabase(config);
  await assertOwnSchema(url);
  const access = openAccess();
  await access.check();
  const sql = access.open({
    applicationName: 'plumbline publish',
    maxConnections: 4,
    role: 'plumbline_worker',
  });
  const logger = pino({ level: 'warn' }, destination(2));
  let eventLog: InstanceLog | undefined;
  try {
    const installation = await findInstallation(url);
    await installation.haveLog(config, logger);
    eventLog = await openEventLog({
      config,
      logger,
      pools: { watch: sql, publish: sql, ops: sql },
      reports: { onTopicLost: (topic, reason) => fail(`topic ${topic} is lost: ${reason}`), onTopicError },
    });
    await maintainLog(logUpkeep(sql, config));
    await eventLog.prepare();
    const ports = {
      outbox: eventLog.outbox,
      onQuarantined(stream: bigint, reason: string) {
        fail(`stream ${stream} is held: ${reason}`);
      },
      onStreamError(stream: bigint, error: unknown) {
        fail(`stream ${stream} cannot be published: ${messageOf(error)}`);
      },
    };
    const published = await publishOnce(ports, AbortSignal.timeout(BUDGET_MS));
    const { records } = await readOutboxState(sql);
    process.stdout.write(`published ${published} events${records > 0 ? waiting(records) : ''}\n`);
  } finally {
    await eventLog?.close();
    await sql.end({ timeout: 1 });
    await access.close();
  }
});

function onTopicError(error: unknown, topic: string | undefined): void {
  fail(`${topic === undefined ? 'topics' : `topic ${topic}`} cannot be looked after: ${messageOf(error)}`);
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}

function waiting(records: number): string {
  return `; ${records} wait: they are new, another publisher has them, or their stream is held`;
}
