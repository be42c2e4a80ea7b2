/** `wrangler dev` as a child: workerd on this machine, with what the deployed worker is bound to. */

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import { logWorkerLine } from '#infra/cloudflare/dev/worker-lines.ts';
import { workerVariables } from '#infra/cloudflare/dev/worker-variables.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { openPrivateDirectory, writePrivateFile } from '#infra/_shared/data-dir/data-directory.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

const CONFIGURATION = resolve(import.meta.dirname, '../wrangler.jsonc');
const WORKER = resolve(import.meta.dirname, '../worker.ts');
const INSTALLATION = resolve(import.meta.dirname, '../installation.ts');
const END_WITH_PARENT = pathToFileURL(resolve(import.meta.dirname, 'end-with-parent.ts')).href;
const READY = 'Ready on http://';
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const KEPT_LINES = 40;

export interface WranglerOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  /** Of the worker's login. */
  readonly pooledUrl: string;
  /** On the loopback interface. */
  readonly port: number;
  readonly logger: Logger;
  /** Bindings that are text, beside those of the configuration. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface Wrangler {
  /** Rejects when it ends by itself. */
  readonly ended: Promise<never>;
  stop(): Promise<void>;
}

/** Answers when workerd does. @throws {StartError} with what wrangler said when it does not start. */
export async function startWrangler({
  config,
  databaseUrl,
  pooledUrl,
  port,
  logger,
  variables,
}: WranglerOptions): Promise<Wrangler> {
  const directory = await openPrivateDirectory(config.dataDir, 'workerd');
  // Arguments and environments of processes can be seen by others; this file by nobody.
  const file = join(directory, 'bindings.env');
  await writePrivateFile(file, envFile({ ...variables, ...workerVariables(databaseUrl, config) }));
  const entry = config.kindsModule === undefined ? WORKER : await writeEntry(directory, config.kindsModule);
  const child = spawn(
    process.execPath,
    [
      // Both of wrangler's processes get it.
      `--import=${END_WITH_PARENT}`,
      wranglerProgram(),
      'dev',
      entry,
      `--config=${CONFIGURATION}`,
      '--ip=127.0.0.1',
      `--port=${port}`,
      '--inspector-port=0',
      `--persist-to=${directory}`,
      `--env-file=${file}`,
      '--show-interactive-dev-session=false',
    ],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        ...process.env,
        CLOUDFLARE_HYPERDRIVE_LOCAL_CONNECTION_STRING_HYPERDRIVE: pooledUrl,
        CLOUDFLARE_CF_FETCH_ENABLED: 'false',
        WRANGLER_SEND_METRICS: 'false',
        NO_COLOR: '1',
      },
    },
  );
  const killWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const lines: string[] = [];
  let isStopping = false;
  const exit = new Promise<void>((done) => child.once('close', () => done()));
  const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', take);
  const ended = exit.then(() => {
    if (isStopping) return new Promise<never>(() => undefined);
    throw new StartError(`workerd has ended:\n${lines.join('\n')}`);
  });
  ended.catch(() => undefined);
  const expiry = AbortSignal.timeout(START_TIMEOUT_MS);
  const late = new Promise<never>((_, reject) => {
    expiry.addEventListener('abort', () => reject(new StartError(`workerd did not start:\n${lines.join('\n')}`)));
  });
  late.catch(() => undefined);
  await Promise.race([ready, ended, late]);
  return { ended, stop };

  function take(line: string): void {
    if (line.trim() === '') return;
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
    if (line.includes(READY)) onReady();
    logWorkerLine(line, logger);
  }

  async function stop(): Promise<void> {
    isStopping = true;
    process.off('exit', killWithUs);
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exit;
    clearTimeout(timer);
  }
}

/** A module to deploy with kinds of a team's own; theirs looks the same. */
async function writeEntry(directory: string, kindsModule: string): Promise<string> {
  const path = join(directory, 'entry.ts');
  const isPath = kindsModule.startsWith('.') || isAbsolute(kindsModule) || /\.[cm]?[jt]s$/.test(kindsModule);
  const kinds = isPath ? resolve(kindsModule) : fileURLToPath(import.meta.resolve(kindsModule));
  await writePrivateFile(
    path,
    [
      `import kinds from ${JSON.stringify(kinds)};`,
      `import { serveKinds } from ${JSON.stringify(INSTALLATION)};`,
      `export { Background, default, KafkaRelay, WatchShard } from ${JSON.stringify(WORKER)};`,
      'serveKinds(kinds);\n',
    ].join('\n'),
  );
  return path;
}

/** What node runs. @throws {StartError} when wrangler is not installed. */
export function wranglerProgram(): string {
  try {
    const manifest = createRequire(import.meta.url).resolve('wrangler/package.json');
    return join(dirname(manifest), 'bin/wrangler.js');
  } catch (error) {
    throw new StartError('wrangler is not installed; it is a development dependency: run npm install', {
      cause: error,
    });
  }
}

function envFile(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}='${value.replaceAll("'", String.raw`\'`)}'\n`)
    .join('');
}
