/**
 * `npm run reconcile`: runs all passes that are due, and the housekeeping of their queue, once, for cron. Any number of
 * them, and of resident reconcilers, may run at once.
 */

import { Registry } from 'prom-client';
import { destination } from 'pino';
import { createLogger } from '#adapters/node/logger.ts';
import { createReconcileMetrics } from '#adapters/node/reconcile-metrics.ts';
import { readWorkState } from '#adapters/postgres/work-state.ts';
import { doUpkeep } from '#functions/reconcile/run-upkeep.ts';
import { runOnce } from '#functions/reconcile/run-once.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { openEventLog } from '#infra/_shared/event-log/event-log.ts';
import { findDatabase } from '#infra/_shared/database/find-database.ts';
import { findInstallation } from '#infra/_shared/database/installation.ts';
import { openKinds } from '#infra/_shared/kinds/open-kinds.ts';
import { assertOwnSchema } from '#infra/_shared/database/own-schema.ts';
import { reconcileDeps, upkeepDeps } from '#infra/_shared/kinds/reconciler.ts';

/** Of housekeeping and passes together: the next one of a cron that calls every minute finds the leases free. */
const BUDGET_MS = 50_000;

await runCommand(async function reconcile() {
  const config = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  const { url, access: openAccess } = await findDatabase(config);
  await assertOwnSchema(url);
  const access = openAccess();
  await access.check();
  const sql = access.open({
    applicationName: 'plumbline reconcile',
    maxConnections: 4,
    role: 'plumbline_worker',
  });
  const logger = createLogger({ format: config.logFormat, level: 'warn', stream: destination(2) });
  const installation = await findInstallation(url);
  await installation.haveLog(config, logger);
  const reports = { onTopicLost: () => undefined, onTopicError: () => undefined };
  const eventLog = await openEventLog({ config, logger, pools: { watch: sql, publish: sql, ops: sql }, reports });
  try {
    const kinds = await openKinds({ config, databaseUrl: url, sql, topicAdmin: eventLog.topicAdmin }, installation);
    const metrics = createReconcileMetrics(new Registry(), () => readWorkState(sql));
    const options = { config, kinds: kinds.all, sql, logger, metrics };
    const endAtMs = performance.now() + BUDGET_MS;
    await doUpkeep(upkeepDeps(options), AbortSignal.timeout(BUDGET_MS));
    const count = await runOnce(reconcileDeps(options), { budgetMs: Math.max(0, endAtMs - performance.now()) });
    const { dueItems, failingItems } = await readWorkState(sql);
    process.stdout.write(`ran ${count} passes; ${dueItems} are due, ${failingItems} objects fail\n`);
  } finally {
    await eventLog.close();
    await sql.end({ timeout: 1 });
    await access.close();
  }
});
