/** workerd by itself, without what wrangler puts in front of it: for how long it takes to start. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { workerdProgram } from '#test/workerd/workerd-program.ts';

export interface RawWorkerdOptions {
  /** An ES module whose default export answers. */
  readonly script: string;
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
  readonly texts?: Readonly<Record<string, string>>;
  /** Bindings to classes of the script. */
  readonly durableObjects?: Readonly<Record<string, string>>;
  /** What HYPERDRIVE leads to. */
  readonly databaseUrl?: string;
}

export interface RawWorkerd {
  readonly url: string;
  /** Since the start of its process: by then the script is compiled and evaluated. */
  readonly listeningMs: number;
  /** What it used of the processor until then. Linux only; NaN elsewhere. */
  readonly listeningCpuMs: number;
  stop(): Promise<void>;
}

/** @throws with what it said when it ends before it listens. */
export async function startRawWorkerd(options: RawWorkerdOptions): Promise<RawWorkerd> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-workerd-'));
  await writeFile(join(directory, 'worker.js'), options.script);
  await writeFile(join(directory, 'config.capnp'), configuration(options));
  const startedAtMs = performance.now();
  const child = spawn(workerdProgram(), ['serve', '--experimental', '--control-fd=3', 'config.capnp'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  const killWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text));
  const exit = once(child, 'exit');
  const port = await Promise.race([
    listeningPort(child.stdio[3] as Readable),
    exit.then((): never => {
      throw new Error(`workerd did not start: ${said}`);
    }),
  ]);
  const listeningMs = performance.now() - startedAtMs;
  return {
    url: `http://127.0.0.1:${port}`,
    listeningMs,
    listeningCpuMs: await cpuMs(child.pid ?? 0),
    async stop() {
      process.off('exit', killWithUs);
      child.kill('SIGKILL');
      await exit;
      await rm(directory, { recursive: true });
    },
  };
}

async function listeningPort(control: Readable): Promise<number> {
  for await (const line of createInterface({ input: control })) {
    const message = JSON.parse(line) as { event: string; port?: number };
    if (message.event === 'listen' && message.port !== undefined) return message.port;
  }
  throw new Error('workerd closed its control pipe');
}

/** Of all its threads; in nanoseconds there, where other places count in hundredths of a second. */
async function cpuMs(pid: number): Promise<number> {
  try {
    const folder = `/proc/${pid}/task`;
    const threads = await readdir(folder);
    const used = await Promise.all(threads.map((thread) => readFile(`${folder}/${thread}/schedstat`, 'utf8')));
    return used.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e6, 0);
  } catch {
    return Number.NaN;
  }
}

/** @see https://github.com/cloudflare/workerd/blob/main/src/workerd/server/workerd.capnp */
function configuration(options: RawWorkerdOptions): string {
  const { compatibilityDate, compatibilityFlags, texts = {}, durableObjects = {}, databaseUrl } = options;
  const { host, pathname, username, password } = new URL(databaseUrl ?? 'postgres://nobody:none@127.0.0.1:1/none');
  const bindings = [
    ...Object.entries(texts).map(([name, value]) => `(name = ${quote(name)}, text = ${quote(value)})`),
    ...Object.entries(durableObjects).map(
      ([name, className]) => `(name = ${quote(name)}, durableObjectNamespace = ${quote(className)})`,
    ),
    `(name = "HYPERDRIVE", hyperdrive = (designator = "database", scheme = "postgresql",
      database = ${quote(pathname.slice(1))}, user = ${quote(username)}, password = ${quote(password)}))`,
  ];
  const namespaces = Object.values(durableObjects).map(
    (className) => `(className = ${quote(className)}, uniqueKey = ${quote(className)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "database", external = (address = ${quote(host)}, tcp = ())),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = ${quote(compatibilityDate)},
  compatibilityFlags = [${compatibilityFlags.map(quote).join(', ')}],
  bindings = [${bindings.join(',\n    ')}],
  durableObjectNamespaces = [${namespaces.join(', ')}],
  durableObjectStorage = (inMemory = void)
);
`;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
