/** The folder of a cluster: one process at a time works in it, and it says what cluster it holds. */

import { randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { stopOrphan } from '#infra/kafka/orphan.ts';
import { PRIVATE_DIRECTORY_MODE, createPrivateFile } from '#infra/_shared/data-dir/data-directory.ts';
import { lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';
import { StartError, hasCode, messageOf } from '#infra/_shared/life/start-error.ts';

export interface ClusterDirectory {
  readonly clusterId: string;
  /** The folder of a node, which exists. */
  nodeDirectory(id: number): string;
  /** Lets the next process in. */
  release(): void;
}

const DESCRIPTION_FILE = 'cluster.json';
const DescriptionSchema = v.object({ clusterId: v.string(), nodes: v.number() });

/**
 * Opens or makes the folder, and stops brokers that a killed process left in it.
 * @throws {StartError} when another process uses it, or it holds a cluster of another size.
 */
export async function openClusterDirectory(dataDir: string, nodes: number): Promise<ClusterDirectory> {
  await mkdir(dataDir, { recursive: true, mode: PRIVATE_DIRECTORY_MODE }).catch((error: unknown) => {
    throw new StartError(`${dataDir} cannot be made: ${messageOf(error)}`, { cause: error });
  });
  const lock = await lockInstance(dataDir);
  const nodeDirectory = (id: number): string => join(dataDir, `node-${id}`);
  try {
    const description = (await describe(dataDir)) ?? (await create(dataDir, nodes));
    if (description.nodes !== nodes) {
      throw new StartError(
        `${dataDir} holds a cluster of ${description.nodes} node(s), and ${nodes} were asked for; start it with ` +
          `--nodes ${description.nodes}, remove the folder with all that is in it, or take another DATA_DIR`,
      );
    }
    for (let id = 1; id <= nodes; id++) {
      await mkdir(nodeDirectory(id), { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
      await stopOrphan(nodeDirectory(id));
    }
    return { clusterId: description.clusterId, nodeDirectory, release: () => lock.release() };
  } catch (error) {
    lock.release();
    throw error;
  }
}

type Description = v.InferOutput<typeof DescriptionSchema>;

async function describe(dataDir: string): Promise<Description | undefined> {
  const file = join(dataDir, DESCRIPTION_FILE);
  try {
    return v.parse(DescriptionSchema, JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw new StartError(`${file} does not describe a cluster (${messageOf(error)}); remove ${dataDir} to start anew`);
  }
}

async function create(dataDir: string, nodes: number): Promise<Description> {
  const description = { clusterId: randomBytes(16).toString('base64url'), nodes };
  await createPrivateFile(join(dataDir, DESCRIPTION_FILE), `${JSON.stringify(description)}\n`);
  return description;
}
