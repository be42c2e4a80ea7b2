/** A process that runs an embedded PostgreSQL until the end of its input, then stops it. */

import { pino } from 'pino';
import { startEmbeddedPostgres } from '#infra/_shared/postgres/embedded-postgres.ts';

const [, , dataDir = '.'] = process.argv;
const server = await startEmbeddedPostgres({ dataDir, log: pino({ level: 'silent' }) });
const { url, pid, clusterDirectory } = server;
process.stdout.write(`${JSON.stringify({ url, pid, clusterDirectory })}\n`);
process.stdin.resume().once('end', () => void server.stop().then(() => process.exit()));
