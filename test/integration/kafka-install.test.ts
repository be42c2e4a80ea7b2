import { chmod, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { installKafka } from '#infra/kafka/install.ts';
import { FOLDER_PREFIX } from '#test/support/kafka-of-run.ts';
import { makeOwnFolder } from '#test/support/leftovers.ts';

const JAVA_17 = `echo 'openjdk version "17.0.1" 2021-10-19' >&2`;
const MAVEN_VERSION = `if [ "$2" = -version ]; then echo 'Apache Maven 3.9.9 (abc)'; exit; fi`;
const TARGET = `for each; do case "$each" in -DoutputDirectory=*) target="\${each#*=}";; esac; done`;
/** Does what Maven does, noting each time that it is asked. */
const MAVEN = [MAVEN_VERSION, TARGET, '/bin/mkdir -p "$target"', 'echo jar > "$target/kafka.jar"'].join('\n');

let folder: string;
let programs: string;
let calls: string;

beforeEach(async () => {
  folder = await makeOwnFolder(FOLDER_PREFIX);
  programs = join(folder, 'bin');
  calls = join(folder, 'calls');
  await mkdir(programs);
  vi.stubEnv('PATH', programs);
  vi.stubEnv('JAVA_HOME', '');
  vi.stubEnv('XDG_CACHE_HOME', join(folder, 'cache'));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

async function program(name: string, script: string): Promise<void> {
  const file = join(programs, name);
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
}

/** What lies in the cache of Kafka, but for the lock. */
async function cached(): Promise<string[]> {
  const cache = join(folder, 'cache', 'plumbline');
  const [version = ''] = await readdir(cache);
  return (await readdir(join(cache, version))).filter((name) => !name.startsWith('instance.'));
}

describe('installKafka()', () => {
  test('says what to install when Java is missing or too old, and what to do without it', async () => {
    await expect(installKafka()).rejects.toThrow(
      'Java is needed to run Apache Kafka here, and does not run (spawn java ENOENT); install Java 17 or newer and Maven ' +
        '(Debian, Ubuntu: apt-get install default-jre-headless maven; macOS: brew install openjdk maven), or use a ' +
        'cluster that exists: KAFKA_BROKERS=host:9092',
    );
    await program('java', `echo 'openjdk version "11.0.2" 2019-01-15' >&2`);
    await expect(installKafka()).rejects.toThrow(
      'the Java here (java) is 11.0.2, and Kafka needs 17 or newer; install Java 17',
    );
    vi.stubEnv('JAVA_HOME', '/nowhere');
    await expect(installKafka()).rejects.toThrow('does not run (spawn /nowhere/bin/java ENOENT)');
  });

  test('says what to install when Maven is missing or too old', async () => {
    await program('java', JAVA_17);
    await expect(installKafka()).rejects.toThrow(
      'Maven is needed to run Apache Kafka here, and does not run (spawn mvn ENOENT); install Java 17 or newer and Maven',
    );
    await program('mvn', 'echo Apache Maven 3.0.5');
    await expect(installKafka()).rejects.toThrow('the Maven here is 3.0.5, and 3.6 or newer is needed');
  });

  test('says what Maven says when the jars cannot be fetched, leaves nothing half, and can be tried again', async () => {
    await program('java', JAVA_17);
    const failure = `echo '[ERROR] Failed to execute goal: Unknown host'; echo '[ERROR] '; exit 1`;
    await program('mvn', MAVEN.replace('echo jar', `echo half > "$target/half.jar"; ${failure}; echo`));
    await expect(installKafka()).rejects.toThrow(
      /^Maven cannot fetch Apache Kafka 4\.3\.1: Failed to execute goal: Unknown host\nCheck the network/,
    );
    expect(await cached()).toEqual([]);
    await program('mvn', MAVEN);
    const { version, classPath } = await installKafka();
    expect(version).toBe('4.3.1');
    expect(await readFile(classPath, 'utf8')).toBe('jar\n');
    expect(await cached()).toEqual(['lib']);
  });

  test('fetches once, however many ask at once, and never again', async () => {
    await program('java', JAVA_17);
    await program('mvn', `${MAVEN}\necho "$@" >> '${calls}'`);
    const installed = await Promise.all([installKafka(), installKafka(), installKafka()]);
    expect(new Set(installed.map(({ classPath }) => classPath)).size).toBe(1);
    await program('mvn', 'exit 1');
    expect(await installKafka()).toEqual(installed[0]);
    expect((await readFile(calls, 'utf8')).trim().split('\n')).toHaveLength(1);
  });

  test('keeps versions apart, and fetches the one that is asked for', async () => {
    await program('java', JAVA_17);
    await program('mvn', `${MAVEN}\necho "$@" >> '${calls}'`);
    const standard = await installKafka();
    const other = await installKafka({ version: '4.0.2' });
    expect(other.version).toBe('4.0.2');
    expect(other.classPath).not.toBe(standard.classPath);
    expect(await readFile(calls, 'utf8')).toMatch(/-Dkafka\.version=4\.3\.1 [^\n]*\n[^\n]*-Dkafka\.version=4\.0\.2 /);
  });

  test('runs without the archive of classes where that cannot be made, and says so', async () => {
    await program('java', JAVA_17);
    await program('mvn', MAVEN);
    const said: string[] = [];
    const { classArchive } = await installKafka({ onProgress: (line) => said.push(line) });
    expect(classArchive).toBeUndefined();
    expect(said).toEqual([
      expect.stringMatching(/^fetching Apache Kafka 4\.3\.1 by Maven, once \(44 MB into /),
      expect.stringMatching(/^Kafka will start slowly, without an archive of its classes: /),
    ]);
  });
});
