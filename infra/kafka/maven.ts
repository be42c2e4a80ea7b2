/** Fetching by Maven. Which registry it asks, by which proxy and with which account, is for the machine's settings to say. */

import { spawn } from 'node:child_process';
import { StartError } from '#infra/_shared/life/start-error.ts';

const MAX_SAID_LINES = 5;

export interface FetchParams {
  readonly maven: string;
  readonly pom: string;
  /** Of Apache Kafka. */
  readonly version: string;
  /** A folder, made when absent. */
  readonly target: string;
}

/**
 * Copies the jars of a pom and all that they need at run time. Jars that do not match their checksums are refused. The
 * fetch ends with this process.
 * @throws {StartError} with what Maven says.
 */
export async function fetchJars({ maven, pom, version, target }: FetchParams): Promise<void> {
  const quietly = ['--quiet', '--batch-mode', '--strict-checksums', '--file', pom];
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${target}`];
  const child = spawn(maven, [...quietly, `-Dkafka.version=${version}`, ...goal], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killWithUs = (): void => void child.kill();
  process.once('exit', killWithUs);
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => said.push(text));
  }
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject).once('close', resolve);
    });
    if (code !== 0) throw failed(version, said.join(''));
  } finally {
    process.off('exit', killWithUs);
  }
}

/** Maven repeats itself and advises on Maven: the first lines of the error say it all. */
function failed(version: string, said: string): StartError {
  const lines = said
    .split('\n')
    .map((line) => line.replace(/^\[ERROR\] ?/, '').trim())
    .filter((line) => line !== '')
    .slice(0, MAX_SAID_LINES);
  return new StartError(
    `Maven cannot fetch Apache Kafka ${version}: ${lines.join(' | ') || 'it does not say why'}\n` +
      'Check the network and the settings of Maven (~/.m2/settings.xml: mirror, proxy) and try again, or use a cluster ' +
      'that exists: KAFKA_BROKERS=host:9092',
  );
}
