/**
 * Apache Kafka on this machine: Maven fetches its jars once, with the machine's own Maven settings, into a cache outside
 * the checkout. They appear there whole or not at all, whoever fetches and whoever is killed while fetching.
 */

import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { writeClassArchive } from '#infra/kafka/class-archive.ts';
import type { KafkaPrograms } from '#infra/kafka/broker-process.ts';
import { fetchJars } from '#infra/kafka/maven.ts';
import { type Java, findJava, findMaven } from '#infra/kafka/programs.ts';
import { type InstanceLock, lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

const POM = fileURLToPath(new URL('pom.xml', import.meta.url));
/** Somebody else may be fetching, over a slow line. */
const LOCK_PATIENCE_MS = 600_000;
const LOCK_POLL_MS = 100;

export interface InstallOptions {
  /** Of Apache Kafka. @default the one in pom.xml */
  readonly version?: string;
  /** Told what takes long, in words for a terminal. */
  readonly onProgress?: (text: string) => void;
}

export interface KafkaInstallation extends KafkaPrograms {
  /** Of Apache Kafka. */
  readonly version: string;
}

/**
 * Answers from the cache, after filling it when it is empty: 44 MB of jars, and 48 MB with the classes that a start
 * loads, which takes it from 2 s to 0.8 s.
 * @throws {MissingProgramError} without Java, or without Maven when it is needed.
 * @throws {StartError} when the jars cannot be fetched, with what Maven says.
 */
export async function installKafka({
  version,
  onProgress = () => undefined,
}: InstallOptions = {}): Promise<KafkaInstallation> {
  const java = await findJava();
  const { folder, version: resolved } = await placeOf(version);
  const jars = join(folder, 'lib');
  if (!(await isThere(jars))) {
    const maven = await findMaven();
    await once(jars, async function fetch(temporary) {
      onProgress(`fetching Apache Kafka ${resolved} by Maven, once (44 MB into ${folder})`);
      await fetchJars({ maven, pom: POM, version: resolved, target: temporary });
    });
  }
  const classPath = (await readdir(jars))
    .toSorted()
    .map((name) => join(jars, name))
    .join(delimiter);
  const programs = { java: java.program, classPath, classArchive: undefined };
  return { ...programs, version: resolved, classArchive: await openClassArchive(folder, java, programs, onProgress) };
}

/** @throws {MissingProgramError} when `installKafka` could not even begin. Fetches nothing. */
export async function requireProgramsForKafka(): Promise<void> {
  await findJava();
  const { folder } = await placeOf(undefined);
  if (!(await isThere(join(folder, 'lib')))) await findMaven();
}

/** The name tells what is in it: of another pom or version there is another folder. */
async function placeOf(wanted: string | undefined): Promise<{ folder: string; version: string }> {
  const pom = await readFile(POM, 'utf8');
  const version = wanted ?? /<kafka\.version>([^<]+)</.exec(pom)?.[1] ?? '';
  const hash = createHash('sha256').update(pom).digest('hex').slice(0, 8);
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return { folder: join(cache, 'plumbline', `kafka-${version}-${hash}`), version };
}

/** A faster start is not worth a failed one: without an archive a broker runs all the same. */
async function openClassArchive(
  folder: string,
  java: Java,
  programs: KafkaPrograms,
  onProgress: (text: string) => void,
): Promise<string | undefined> {
  const archive = join(folder, `classes-${java.fingerprint}.jsa`);
  try {
    await once(archive, (temporary) => writeClassArchive(programs, temporary));
    return archive;
  } catch (error) {
    onProgress(`Kafka will start slowly, without an archive of its classes: ${messageOf(error)}`);
    return undefined;
  }
}

/**
 * Makes a file or a folder of the cache. `make` is given a path beside it that does not exist, which is moved to its
 * place when it is complete. One process makes at a time; those who waited find what it made.
 */
async function once(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  if (await isThere(path)) return;
  const folder = dirname(path);
  const lock = await lockWhenFree(folder, path);
  if (!lock) return;
  try {
    const prefix = `${basename(path)}.new-`;
    // Under the lock, what is unfinished belongs to a process that was killed.
    for (const name of await readdir(folder)) {
      if (name.startsWith(prefix)) await rm(join(folder, name), { recursive: true, force: true });
    }
    const workshop = await mkdtemp(join(folder, prefix));
    try {
      const temporary = join(workshop, basename(path));
      await make(temporary);
      await rename(temporary, path);
    } finally {
      await rm(workshop, { recursive: true, force: true });
    }
  } finally {
    lock.release();
  }
}

/** Undefined when what is to be made appeared meanwhile. */
async function lockWhenFree(folder: string, path: string): Promise<InstanceLock | undefined> {
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new StartError(`the cache ${folder} cannot be made: ${messageOf(error)}; set XDG_CACHE_HOME to another`);
  });
  const deadline = Date.now() + LOCK_PATIENCE_MS;
  for (;;) {
    try {
      const lock = await lockInstance(folder);
      if (!(await isThere(path))) return lock;
      lock.release();
      return undefined;
    } catch (error) {
      // With a cause the folder cannot be locked at all; without, somebody has it.
      if (!(error instanceof StartError) || error.cause !== undefined || Date.now() > deadline) throw error;
      await delay(LOCK_POLL_MS);
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
