/** `npm run edge` for a test file: workerd through wrangler, on a database of its own, with the kinds of the suites. */

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { deploymentIn } from '#test/http/deployment.ts';
import type { Deployment } from '#test/http/target.ts';
import { startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { workerdProgram } from '#test/workerd/workerd-program.ts';

export interface Edge extends Deployment {
  /** Of the superuser. */
  readonly databaseUrl: string;
  /** Of `npm run edge` itself; workerd is a grandchild. */
  readonly pid: number;
  /** What it logged lately. */
  log(): string;
  stop(): Promise<void>;
}

export const EDGE = 'infra/cloudflare/main.ts';

/** Why workerd cannot run here; undefined when it can. */
export const noWorkerd: string | undefined = findProblem();
if (noWorkerd !== undefined) console.warn(`skipped: workerd cannot run here: ${noWorkerd}`);

/**
 * The same one each time, until the end of the test file.
 * @param variables that it gets besides.
 */
export function useEdge(variables?: () => Promise<Readonly<Record<string, string>>>): () => Promise<Edge> {
  let starting: Promise<Edge> | undefined;
  afterAll(async () => (await starting)?.stop());
  return () => (starting ??= start());

  async function start(): Promise<Edge> {
    return startEdge(await variables?.());
  }
}

export async function startEdge(variables: Readonly<Record<string, string>> = {}): Promise<Edge> {
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'plumbline-edge-'));
  const instance = await startLocalInstance({
    program: EDGE,
    databaseUrl: database.url,
    dataDir,
    // Suites write side by side.
    env: { TENANT_GRACE_SECONDS: '1', TENANT_REQUESTS_AT_ONCE: '128', ...variables },
  }).catch(async (error: unknown) => {
    await leave();
    throw error;
  });
  return {
    ...(await deploymentIn(dataDir)),
    databaseUrl: database.url,
    pid: instance.process.pid,
    log: () => instance.log(),
    async stop(): Promise<void> {
      await instance.stop();
      await leave();
    },
  };

  async function leave(): Promise<void> {
    await database.drop();
    await rm(dataDir, { recursive: true });
  }
}

function findProblem(): string | undefined {
  try {
    const { status, error, stderr } = spawnSync(workerdProgram(), ['--version'], { encoding: 'utf8' });
    return status === 0 ? undefined : (error?.message ?? stderr.trim());
  } catch (error) {
    return String(error);
  }
}
