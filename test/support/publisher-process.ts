/**
 * A publisher as a process of its own, to be killed and frozen. `resident` sleeps and wakes as `npm start` does; `cron`
 * drains again and again, as scheduled functions do. It ends with its standard input.
 */

import { connect } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresPublisherSleep } from '#adapters/postgres/publisher-sleep.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { runResidentPublisher } from '#functions/publish/resident-publisher.ts';

const [, , databaseUrl = '', mode = 'resident'] = process.argv;
const sql = connect(databaseUrl, {
  applicationName: 'plumbline test publisher',
  maxConnections: 4,
  role: 'plumbline_server',
});
const outbox = postgresOutbox(sql);
const { signal } = new AbortController();

process.stdin.resume().once('end', () => process.exit());
process.stdout.write('ready\n');
// Its connections are cut by tests too; what it cannot do now, it does later.
const ignore = (): void => undefined;
if (mode === 'resident') {
  await runResidentPublisher(
    { outbox, sleep: postgresPublisherSleep({ databaseUrl, sql, signal }), onError: ignore },
    signal,
  );
}
for (;;) {
  await publishOnce({ outbox }).catch(ignore);
  await new Promise((resolve) => setTimeout(resolve, 20));
}
