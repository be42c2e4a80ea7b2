/** `npm start` as a process of its own, so that a test can freeze it and kill it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadDevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import type { Target } from '#test/http/target.ts';
import { type Child, startChild } from '#test/support/child.ts';

export interface LocalInstanceOptions {
  readonly databaseUrl: string;
  /** One that outlives the instance, so that a second one takes its keys over. @default a new one, removed at the stop */
  readonly dataDir?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** @default that of `npm start` */
  readonly program?: string;
  /** Of an instance with an issuer of its own. @default the development key of its folder signs them */
  readonly token?: Target['token'];
  /** Called with each line that it logs. */
  readonly onLine?: (line: string) => void;
}

/** Its public listener. */
export interface LocalInstance extends Target {
  readonly opsUrl: string;
  /** Its private listener's. */
  readonly controllerUrl: string;
  readonly process: Child;
  /** What it logged lately, for a failure's message. */
  log(): string;
  /** Asks it to stop, however it fares, and removes its folder. */
  stop(): Promise<void>;
}

const KEPT_LINES = 200;
const STOP_DEADLINE_MS = 15_000;

/** Resolves when it is ready. It serves the kinds of the black-box suites. */
export async function startLocalInstance(options: LocalInstanceOptions): Promise<LocalInstance> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'plumbline-instance-')));
  const child = startChild(
    '--import',
    ['./test/support/end-with-parent.ts', options.program ?? 'infra/local/main.ts'],
    {
      env: {
        DATABASE_URL: options.databaseUrl,
        DATA_DIR: dataDir,
        PORT: '0',
        CONTROLLER_PORT: '0',
        OPS_PORT: '0',
        KINDS: './test/http/kinds.ts',
        LOG_FORMAT: 'json',
        LOG_LEVEL: 'info',
        // Tests that write as fast as they can share one tenant.
        TENANT_REQUESTS_PER_SECOND: '100000',
        ...options.env,
      },
    },
  );
  const lines: string[] = [];
  const ready = await readUntilReady();
  void drain();
  const token = options.token ?? (await developmentTokens());
  return {
    baseUrl: ready.publicUrl,
    audience: 'public',
    opsUrl: ready.opsUrl,
    process: child,
    controllerUrl: ready.controllerUrl,
    token,
    log: () => lines.join('\n'),
    stop,
  };

  async function developmentTokens(): Promise<Target['token']> {
    const { issueToken } = await loadDevelopmentIdentity(dataDir);
    return (grant) => issueToken({ subject: 'test', audience: 'public', ttlSeconds: 600, ...grant });
  }

  async function readUntilReady(): Promise<Addresses> {
    for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) {
      take(line);
      const entry: unknown = JSON.parse(line);
      if (isReady(entry)) return entry;
    }
    const { code, errors } = await child.exit;
    throw new Error(`the instance ended with code ${code} before it was ready: ${errors}\n${lines.join('\n')}`);
  }

  function take(line: string): void {
    options.onLine?.(line);
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
  }

  async function drain(): Promise<void> {
    for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) {
      take(line);
    }
  }

  async function stop(): Promise<void> {
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    const expiry = setTimeout(() => child.kill('SIGKILL'), STOP_DEADLINE_MS);
    await child.exit;
    clearTimeout(expiry);
    if (options.dataDir === undefined) await rm(dataDir, { recursive: true });
  }
}

interface Addresses {
  readonly publicUrl: string;
  readonly controllerUrl: string;
  readonly opsUrl: string;
}

function isReady(entry: unknown): entry is Addresses {
  return typeof entry === 'object' && entry !== null && 'msg' in entry && entry.msg === 'ready' && 'publicUrl' in entry;
}
