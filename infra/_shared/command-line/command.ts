/** What programs share: an error is told on standard error, in one line, with exit code 1. */

import { unavailabilityIn } from '#infra/_shared/database/database-error.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

const HELP: ReadonlySet<string> = new Set(['--help', '-h']);

/**
 * Runs a program. Errors that the user can do nothing about keep their stack.
 * @param usage what it says when it is asked for help, instead of doing anything.
 */
export async function runCommand(command: () => Promise<void>, usage?: string): Promise<void> {
  if (usage !== undefined && process.argv.slice(2).some((argument) => HELP.has(argument))) {
    process.stdout.write(`${usage}\n`);
    return;
  }
  try {
    await command();
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exitCode = 1;
  }
}

function describe(error: unknown): string {
  if (error instanceof StartError || !(error instanceof Error)) return messageOf(error);
  // A system call failed: a port that is taken, a folder without permission. The text names both.
  if ('syscall' in error) return portHint(error) ?? messageOf(error);
  return unavailabilityIn(error) ?? error.stack ?? messageOf(error);
}

function portHint(error: Error): string | undefined {
  if (!('code' in error && 'port' in error && error.code === 'EADDRINUSE')) return undefined;
  return `port ${String(error.port)} is in use by another process; set PORT, CONTROLLER_PORT or OPS_PORT to another, or to 0 for a free one`;
}
