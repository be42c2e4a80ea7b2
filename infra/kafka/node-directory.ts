/** The folder of a node: its configuration, its log and its storage, which is formatted whole or not at all. */

import { execFile } from 'node:child_process';
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type KafkaPrograms, javaArguments } from '#infra/kafka/broker-process.ts';
import { DATA_FOLDER } from '#infra/kafka/properties.ts';
import { PRIVATE_FILE_MODE } from '#infra/_shared/data-dir/data-directory.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

export interface PrepareNodeParams {
  readonly programs: KafkaPrograms;
  readonly directory: string;
  /** The text of its `server.properties`. */
  readonly properties: string;
  /** 16 bytes in base64url; the same for all nodes. */
  readonly clusterId: string;
  readonly formatArguments?: readonly string[];
}

const UNFINISHED_FOLDER = 'unfinished';
const MAX_SAID_LINES = 3;

/** Writes the configuration, and formats the storage when there is none. @throws {StartError} with what Kafka says. */
export async function prepareNode(params: PrepareNodeParams): Promise<void> {
  const { programs, directory, properties, clusterId, formatArguments = [] } = params;
  await writeFile(join(directory, 'server.properties'), properties, { mode: PRIVATE_FILE_MODE });
  if (await isThere(join(directory, DATA_FOLDER))) return;
  const unfinished = join(directory, UNFINISHED_FOLDER);
  await rm(unfinished, { recursive: true, force: true });
  const configuration = 'format.properties';
  // The last line of a name wins.
  await writeFile(join(directory, configuration), `${properties}log.dirs=${UNFINISHED_FOLDER}\n`, {
    mode: PRIVATE_FILE_MODE,
  });
  // With "=": an id may begin with a hyphen.
  const format = ['format', `--cluster-id=${clusterId}`, '--config', configuration, ...formatArguments];
  try {
    await promisify(execFile)(programs.java, [...javaArguments(programs), 'kafka.tools.StorageTool', ...format], {
      cwd: directory,
    });
  } catch (error) {
    throw new StartError(`Kafka cannot format ${directory}: ${saidOf(error)}`, { cause: error });
  }
  await rename(unfinished, join(directory, DATA_FOLDER));
  await rm(join(directory, configuration));
}

/** Without the command line, which can hold passwords, and the stack. */
function saidOf(error: unknown): string {
  if (!(error instanceof Error && 'stderr' in error)) return messageOf(error);
  const lines = String(error.stderr).split('\n');
  const said = lines.filter((line) => line.trim() !== '' && !/^\s*at /.test(line)).slice(0, MAX_SAID_LINES);
  return said.join(' | ') || 'it says nothing';
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
