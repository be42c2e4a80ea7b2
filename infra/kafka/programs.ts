/** The two programs that a broker of our own needs from the machine: Java, to run it, and Maven, once, to fetch it. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

/** Of brokers since Kafka 4.0 (KIP-1013). */
const LEAST_JAVA = 17;
/** What the dependency plugin that pom.xml names asks for. */
const LEAST_MAVEN = [3, 6] as const;
const WHAT_TO_DO =
  `install Java ${LEAST_JAVA} or newer and Maven (Debian, Ubuntu: apt-get install default-jre-headless maven; ` +
  'macOS: brew install openjdk maven), or use a cluster that exists: KAFKA_BROKERS=host:9092';

/** Java or Maven is not there, or too old. Its message says what to install. */
export class MissingProgramError extends StartError {
  constructor(problem: string, options?: ErrorOptions) {
    super(`${problem}; ${WHAT_TO_DO}`, options);
  }
}

export interface Java {
  readonly program: string;
  /** 17.0.15, say. */
  readonly version: string;
  /** Another one for every build: what one Java wrote for itself, another one cannot read. */
  readonly fingerprint: string;
}

/** That of JAVA_HOME, as Maven takes it, else the one in PATH. @throws {MissingProgramError} */
export async function findJava(): Promise<Java> {
  const home = process.env['JAVA_HOME'];
  const program = home ? join(home, 'bin', 'java') : 'java';
  const said = await versionOf('Java', program, ['-version']);
  const version = /version "([^"]+)"/.exec(said)?.[1] ?? 'unknown';
  if (!(Number.parseInt(version, 10) >= LEAST_JAVA)) {
    throw new MissingProgramError(`the Java here (${program}) is ${version}, and Kafka needs ${LEAST_JAVA} or newer`);
  }
  return { program, version, fingerprint: createHash('sha256').update(said).digest('hex').slice(0, 12) };
}

/** The one in PATH. @throws {MissingProgramError} */
export async function findMaven(): Promise<string> {
  const program = 'mvn';
  const said = await versionOf('Maven', program, ['-B', '-version']);
  const [, version = 'unknown', major, minor] = /Apache Maven ((\d+)\.(\d+)\S*)/.exec(said) ?? [];
  const [leastMajor, leastMinor] = LEAST_MAVEN;
  const isNewEnough = Number(major) > leastMajor || (Number(major) === leastMajor && Number(minor) >= leastMinor);
  if (!isNewEnough) {
    throw new MissingProgramError(`the Maven here is ${version}, and ${LEAST_MAVEN.join('.')} or newer is needed`);
  }
  return program;
}

async function versionOf(name: string, program: string, args: readonly string[]): Promise<string> {
  try {
    // Java tells its version on standard error.
    const { stdout, stderr } = await promisify(execFile)(program, [...args]);
    return `${stdout}${stderr}`;
  } catch (error) {
    const [reason = ''] = messageOf(error).trim().split('\n').slice(-1);
    throw new MissingProgramError(`${name} is needed to run Apache Kafka here, and does not run (${reason})`, {
      cause: error,
    });
  }
}
