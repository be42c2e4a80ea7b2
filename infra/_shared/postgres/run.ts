/** Runs a program to its end, for the few short tools that come with PostgreSQL. */

import { spawn } from 'node:child_process';
import type { Account } from '#infra/_shared/postgres/account.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

export interface RunOptions {
  readonly account: Account | undefined;
  /** Given on standard input. */
  readonly input?: string;
}

/**
 * Answers what the program wrote on standard output.
 * @throws {StartError} with what it wrote on standard error, when it cannot be started or fails.
 */
export async function run(program: string, args: readonly string[], options: RunOptions): Promise<string> {
  const child = spawn(program, args, { ...options.account, cwd: '/', env: toolEnvironment(), stdio: 'pipe' });
  const output: string[] = [];
  const errors: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => output.push(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  // A program that ended early closes its input; its exit code says why.
  child.stdin.on('error', () => undefined).end(options.input ?? '');
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new StartError(`${program} cannot be run: ${error.message}`, { cause: error })),
    );
    child.once('close', resolve);
  });
  if (code !== 0) throw new StartError(`${program} failed: ${errors.join('').trim() || `exit code ${code}`}`);
  return output.join('');
}

/** Without the PG* variables that would point the tools elsewhere, and with messages that can be recognised. */
export function toolEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/.test(name));
  return { ...Object.fromEntries(kept), LC_ALL: 'C' };
}
