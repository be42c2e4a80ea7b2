/** `npm run serve` as processes of their own, with the login of servers, behind an issuer. */

import { randomBytes } from 'node:crypto';
import { withSession } from '#adapters/postgres/session.ts';
import { type Child, startChild } from '#test/support/child.ts';
import type { TokenIssuer } from '#test/support/token-issuer.ts';

export interface ServerProcess {
  readonly process: Child;
  readonly opsUrl: string;
  /** Empty where it has no listeners. */
  readonly publicUrl: string;
  readonly controllerUrl: string;
  /** Asks it to stop. @returns its exit code */
  stop(): Promise<number | null>;
}

export interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

const PROGRAM = ['./test/support/end-with-parent.ts', 'infra/node/main.ts'];

/** A login as a deployment gives it to servers: it may serve and nothing else. @returns its URL */
export async function createServerLogin(ownerUrl: string): Promise<string> {
  const url = new URL(ownerUrl);
  url.username = `${url.pathname.slice(1)}_server`;
  url.password = randomBytes(9).toString('hex');
  await withSession(ownerUrl, { applicationName: 'test' }, (sql) =>
    sql.unsafe(`create role ${url.username} login password '${url.password}' in role plumbline_worker`),
  );
  return url.href;
}

/** The environment of servers that take an issuer's tokens. */
export function serverEnvironment(databaseUrl: string, { issuer, jwksUrl }: TokenIssuer): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    TOKEN_ISSUER: issuer,
    TOKEN_JWKS_URL: jwksUrl,
    KINDS: './test/examples/gated.ts',
    LOG_FORMAT: 'json',
    PORT: '0',
    CONTROLLER_PORT: '0',
    OPS_PORT: '0',
  };
}

/** Resolves when it is ready. @throws when it ends before. */
export async function startServer(role: string, env: Readonly<Record<string, string>>): Promise<ServerProcess> {
  const child = startChild('--import', [...PROGRAM, '--role', role], { env });
  const lines: string[] = [];
  for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) {
    lines.push(line);
    const { msg, opsUrl, publicUrl = '', controllerUrl = '' } = JSON.parse(line);
    if (msg !== 'ready') continue;
    void drain(child);
    return { process: child, opsUrl, publicUrl, controllerUrl, stop: () => stop(child) };
  }
  const { code, errors } = await child.exit;
  throw new Error(`the server ended with code ${code} before it was ready: ${errors}\n${lines.join('\n')}`);
}

/** Runs a program of infra/node to its end. */
export async function runProgram(
  name: 'main' | 'set-up',
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ran> {
  const child = startChild(`infra/node/${name}.ts`, args, { env });
  const lines: string[] = [];
  for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) lines.push(line);
  const { code, errors } = await child.exit;
  return { code, output: lines.join('\n'), errors };
}

async function stop(child: Child): Promise<number | null> {
  child.kill('SIGTERM');
  return (await child.exit).code;
}

/** What nobody reads would hold it up. */
async function drain(child: Child): Promise<void> {
  while ((await child.nextLine()) !== undefined);
}
