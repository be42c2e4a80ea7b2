/**
 * `npm run kafka`: a real Apache Kafka on this machine, until SIGTERM or SIGINT, which end it in order and with 0. What
 * fails says why in one line, and ends with 1. Data are kept between starts.
 */

import { relative } from 'node:path';
import { parseKafkaArguments } from '#infra/kafka/arguments.ts';
import { type Kafka, startKafka } from '#infra/kafka/kafka-server.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';
import { waitForStopSignal } from '#infra/_shared/life/stop-signals.ts';

await runCommand(async function runKafka() {
  const { nodes, port, dataDir } = parseKafkaArguments(process.argv.slice(2), process.env);
  const stopSignal = waitForStopSignal();
  const death = Promise.withResolvers<never>();
  let dead = 0;
  death.promise.catch(() => undefined);
  const starting = startKafka({
    dataDir,
    nodes,
    ...(port !== undefined && { port }),
    onProgress: (text) => process.stderr.write(`${text}\n`),
    onUnexpectedExit(node, { code, signal }) {
      const what = `Kafka node ${node.id} ended by itself (${signal ?? `exit code ${code}`}); its log is ${node.logFile}`;
      dead += 1;
      // The others of a cluster go on, as far as they can: that is what one has a cluster for.
      if (dead === nodes) death.reject(new StartError(what));
      else process.stderr.write(`${what}\n`);
    },
  });
  const kafka = await Promise.race([starting, stopSignal.then(() => undefined)]);
  // Told to stop before it was ready: what was begun ends with this process.
  if (!kafka) return;
  greet(kafka, dataDir, process.env['DATA_DIR']);
  try {
    await Promise.race([stopSignal, death.promise]);
  } finally {
    await kafka.stop();
  }
});
process.exit();

function greet({ version, brokers }: Kafka, dataDir: string, shared: string | undefined): void {
  const below = relative(process.cwd(), dataDir);
  const place = below.startsWith('..') ? dataDir : below;
  process.stdout.write(
    [
      `Apache Kafka ${version} listens on ${brokers.join(', ')}; its data lie in ${place}. Ctrl-C stops it.`,
      '',
      '# Plumbline on it, in another terminal:',
      `${shared ? `DATA_DIR=${shared} ` : ''}EVENT_LOG=kafka KAFKA_BROKERS=${brokers.join()} npm start`,
      '',
      '',
    ].join('\n'),
  );
}
