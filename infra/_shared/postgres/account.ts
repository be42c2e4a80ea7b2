/**
 * Under which account PostgreSQL runs. It refuses root, so a root process (containers, CI) lends it an unprivileged
 * account that the machine has. That account must be able to reach the program and the data, which it cannot below a
 * folder of mode 700 that belongs to root.
 */

import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StartError } from '#infra/_shared/life/start-error.ts';

/** Options of `spawn`. Supplementary groups are dropped with it. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

interface PasswdEntry extends Account {
  readonly name: string;
}

// Debian and Red Hat, macOS, then what nearly every machine has.
const PREFERRED_NAMES = ['postgres', '_postgres', 'nobody'];
const EXECUTE = 0o1;

/** Whether processes must be started under another account than ours. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * The account to use on this machine: undefined means our own.
 * @throws {StartError} for root on a machine without any other account.
 */
export async function chooseAccount(passwdFile = '/etc/passwd'): Promise<Account | undefined> {
  if (!isRoot()) return undefined;
  const entries = parsePasswd(await readFile(passwdFile, 'utf8').catch(() => ''));
  const preferred = PREFERRED_NAMES.map((name) => entries.find((entry) => entry.name === name));
  const chosen = [...preferred, ...entries].find((entry) => entry !== undefined);
  if (!chosen) {
    throw new StartError(
      `PostgreSQL does not run as root, and ${passwdFile} has no other account to run it under; ` +
        'start as another user, or set DATABASE_URL to a server',
    );
  }
  return { uid: chosen.uid, gid: chosen.gid };
}

/** Whether an account may enter a folder: it and all above it. Our own account is not asked about. */
export async function canEnter(account: Account | undefined, directory: string): Promise<boolean> {
  if (!account) return true;
  for (let path = await realpath(directory); ; path = dirname(path)) {
    const { uid, gid, mode } = await stat(path);
    const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
    if ((mode & (EXECUTE << shift)) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

/** Accounts that can run a program unprivileged. initdb looks its account up by uid, so only listed ones will do. */
function parsePasswd(text: string): readonly PasswdEntry[] {
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
    .filter(({ name, uid, gid }) => name !== '' && uid >= 1 && gid >= 0);
}
