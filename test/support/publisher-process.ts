/**
 * A publisher as a process of its own, to be killed and frozen: `publisher-process.ts <database> <mode> [<brokers>]`, with
 * brokers into Kafka, where it naps between its steps now and then. `resident` sleeps and wakes as `npm start` does; `cron` drains again and again, as scheduled functions
 * do; `commanded` drains once for each line of its standard input and answers with the number of events. Such a line may
 * name a signal and a step at which it sends that to itself: `SIGKILL begun`. It ends with its standard input. With
 * DATABASE_DIRECT_URL, <database> is a transaction pooler's.
 */

import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { runTopicKeeper } from '#functions/publish/keep-topics.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { runResidentPublisher } from '#functions/publish/resident-publisher.ts';
import { databaseAccess } from '#infra/_shared/database/database-access.ts';
import { databaseAddresses } from '#infra/_shared/settings/database-variables.ts';
import type { KafkaPublishing } from '#test/support/kafka-publishing.ts';
import { type Step, withSteps } from '#test/support/publisher-steps.ts';

const [, , databaseUrl = '', mode = 'resident', brokers] = process.argv;
const { DATABASE_DIRECT_URL } = process.env;
const access = databaseAccess(databaseAddresses({ DATABASE_URL: databaseUrl, DATABASE_DIRECT_URL }));
const sql = access.open({
  applicationName: 'plumbline test publisher',
  maxConnections: 4,
  role: 'plumbline_worker',
});
const NAP_SHARE = 0.1;
const LONGEST_NAP_MS = 400;
let armed: { readonly signal: string; readonly step: string } | undefined;
const kafka = brokers === undefined ? undefined : await intoKafka(brokers.split(','));
const outbox = kafka?.outbox ?? postgresOutbox(sql);
const { signal } = new AbortController();
// Its connections are cut by tests too; what it cannot do now, it does later.
const ignore = (): void => undefined;

process.stdin.once('end', () => process.exit());
process.stdout.write('ready\n');
if (mode === 'commanded') {
  await obey();
} else {
  process.stdin.resume();
  if (mode === 'resident') await Promise.all([kafka && runTopicKeeper(kafka.keeping, signal), publishResidently()]);
  else await publishRepeatedly();
}

/** A publisher into PostgreSQL does not load it. */
async function intoKafka(addresses: readonly string[]): Promise<KafkaPublishing> {
  const { kafkaPublishing } = await import('#test/support/kafka-publishing.ts');
  return kafkaPublishing({
    sql,
    brokers: addresses,
    around: (ports) => withSteps(ports, mode === 'commanded' ? reach : napNowAndThen),
  });
}

/** Between two steps there is hardly any time: so that others find it there, there must be some. */
async function napNowAndThen(): Promise<void> {
  if (Math.random() < NAP_SHARE) await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_NAP_MS));
}

async function obey(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const [, signalName, step] = /^(SIG\w+) (.+)$/.exec(line) ?? [];
    if (signalName !== undefined && step !== undefined) armed = { signal: signalName, step };
    process.stdout.write(`${await publishOnce({ outbox, onStreamError: ignore })}\n`);
  }
}

function reach(step: Step): void {
  if (armed?.step !== step) return;
  const { signal: name } = armed;
  armed = undefined;
  // At once: there is no later.
  writeSync(1, `${step}\n`);
  process.kill(process.pid, name);
}

async function publishResidently(): Promise<void> {
  await runResidentPublisher(
    {
      outbox,
      sleep: access.sleepOf({ role: 'publisher', sql, signal }),
      onError: ignore,
      onStreamError: ignore,
    },
    signal,
  );
}

async function publishRepeatedly(): Promise<never> {
  for (;;) {
    await publishOnce({ outbox, onStreamError: ignore }).catch(ignore);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
