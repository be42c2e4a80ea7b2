/** A process that runs a broker until the end of its input, then stops it. */

import { startKafka } from '#infra/kafka/kafka-server.ts';

const [, , dataDir = '.'] = process.argv;
const kafka = await startKafka({ dataDir });
process.stdout.write(`${JSON.stringify({ brokers: kafka.brokers, pid: kafka.node(1).pid })}\n`);
process.stdin.resume().once('end', () => void kafka.stop().then(() => process.exit()));
