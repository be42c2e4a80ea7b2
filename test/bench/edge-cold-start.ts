/** What the platform loads: how large the worker and each function are, and how long an isolate takes until it answers. */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { unstable_readConfig } from 'wrangler';
import { makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { wranglerProgram } from '#infra/cloudflare/dev/wrangler.ts';
import { bundleFunction, FUNCTIONS } from '#test/support/function-bundle.ts';
import type { Instance } from '#test/bench/instance.ts';
import { type RawWorkerdOptions, startRawWorkerd } from '#test/bench/raw-workerd.ts';
import { type Finding, median, milliseconds } from '#test/bench/report.ts';

const ROUNDS = 7;
const CONFIGURATION = 'infra/cloudflare/wrangler.jsonc';
const EMPTY = "export default { fetch: () => new Response('') }\n";

export async function benchColdStart(node: Instance): Promise<readonly Finding[]> {
  const worker = await workerOptions(node.databaseUrl);
  const functions = await Promise.all(FUNCTIONS.filter((name) => !name.startsWith('_')).map(functionOptions));
  const plain = { compatibilityDate: worker.compatibilityDate, compatibilityFlags: [] };
  const subjects: readonly RawWorkerdOptions[] = [
    { ...worker, script: EMPTY, durableObjects: {} },
    { ...plain, script: EMPTY },
    worker,
    ...functions.map(({ script }) => ({ ...plain, script })),
  ];
  const starts = subjects.map((): Start[] => []);
  // Each round starts all of them, so that what else the machine does meets them alike.
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, subject] of subjects.entries()) starts[index]!.push(await start(subject));
  }
  const [emptyWithNode, empty, ofWorker, ...ofFunctions] = starts.map(medians);
  return [
    {
      what: 'cold start of the worker: compiled, evaluated, first answer',
      figure:
        `${milliseconds(ofWorker!.listeningMs - emptyWithNode!.listeningMs)} to evaluate, ` +
        `${milliseconds(ofWorker!.firstMs)} more for the first answer, which reads keys and blocks, ` +
        `${milliseconds(ofWorker!.nextMs)} for the next (workerd itself starts in ${milliseconds(emptyWithNode!.listeningMs)})`,
      goal: '',
      met: undefined,
    },
    sizeOf('the worker, as wrangler bundles it', worker.script, ofWorker!.cpuMs - emptyWithNode!.cpuMs),
    ...functions.map(({ name, script }, index) =>
      sizeOf(`functions/${name}, minified`, script, ofFunctions[index]!.cpuMs - empty!.cpuMs),
    ),
  ];
}

interface Start {
  readonly listeningMs: number;
  /** Of the processor, until it listened. */
  readonly cpuMs: number;
  readonly firstMs: number;
  readonly nextMs: number;
}

async function start(options: RawWorkerdOptions): Promise<Start> {
  const workerd = await startRawWorkerd(options);
  try {
    const { url, listeningMs, listeningCpuMs: cpuMs } = workerd;
    const firstMs = await timeOfAnswer(url);
    return { listeningMs, cpuMs, firstMs, nextMs: await timeOfAnswer(url) };
  } finally {
    await workerd.stop();
  }
}

async function timeOfAnswer(url: string): Promise<number> {
  const startedAtMs = performance.now();
  const answer = await fetch(`${url}/version`);
  if (!answer.ok) throw new Error(`/version answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
  return performance.now() - startedAtMs;
}

function medians(starts: readonly Start[]): Start {
  return {
    listeningMs: median(starts.map(({ listeningMs }) => listeningMs)),
    cpuMs: median(starts.map(({ cpuMs }) => cpuMs)),
    firstMs: median(starts.map(({ firstMs }) => firstMs)),
    nextMs: median(starts.map(({ nextMs }) => nextMs)),
  };
}

function sizeOf(what: string, script: string, cpuMs: number): Finding {
  const kib = (bytes: number): string => `${Math.round(bytes / 1024)} KiB`;
  return {
    what: `size of ${what}`,
    figure:
      `${kib(Buffer.byteLength(script))}, ${kib(gzipSync(script).byteLength)} with gzip; ` +
      `evaluated in ${milliseconds(Math.max(0, cpuMs))} of CPU`,
    goal: '',
    met: undefined,
  };
}

async function workerOptions(databaseUrl: string): Promise<RawWorkerdOptions> {
  const { compatibility_date, compatibility_flags, durable_objects } = unstable_readConfig({ config: CONFIGURATION });
  const classes = (durable_objects.bindings as readonly { name: string; class_name: string }[]).map(
    ({ name, class_name }) => [name, class_name] as const,
  );
  const login = { name: 'plumbline_cold', password: crypto.randomUUID() };
  await withSession(databaseUrl, { applicationName: 'bench' }, (sql) => makePooledLogin(sql, login));
  const url = new URL(databaseUrl);
  url.username = login.name;
  url.password = login.password;
  return {
    script: await bundledWorker(),
    compatibilityDate: compatibility_date ?? '',
    compatibilityFlags: compatibility_flags,
    // Nobody is asked for keys of tokens by what is asked here.
    texts: { TOKEN_ISSUER: 'bench', TOKEN_JWKS_URL: 'http://127.0.0.1:1/' },
    durableObjects: Object.fromEntries(classes),
    databaseUrl: url.href,
  };
}

async function bundledWorker(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-bundle-'));
  const options = ['deploy', '--dry-run', `--outdir=${directory}`, `--config=${CONFIGURATION}`];
  await promisify(execFile)(process.execPath, [wranglerProgram(), ...options], {
    env: { ...process.env, WRANGLER_SEND_METRICS: 'false' },
  });
  const script = await readFile(join(directory, 'worker.js'), 'utf8');
  await rm(directory, { recursive: true });
  return script;
}

/** The function alone, without any adapter, in a worker that does nothing with it. */
async function functionOptions(name: string): Promise<{ readonly name: string; readonly script: string }> {
  const { script } = await bundleFunction(name, EMPTY);
  return { name, script };
}
