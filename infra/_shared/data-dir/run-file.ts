/** `DATA_DIR/run.json`: where the running instance is found, by scripts and tests of any deployment. */

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { writePrivateFile } from '#infra/_shared/data-dir/data-directory.ts';
import { hasCode } from '#infra/_shared/life/start-error.ts';

const FILE_NAME = 'run.json';

const RunInfoSchema = v.object({
  pid: v.number(),
  publicUrl: v.string(),
  controllerUrl: v.string(),
  opsUrl: v.string(),
  databaseUrl: v.string(),
});

export interface RunInfo {
  readonly pid: number;
  readonly publicUrl: string;
  readonly controllerUrl: string;
  readonly opsUrl: string;
  /** With its password. */
  readonly databaseUrl: string;
}

/** Written once the instance is ready: whoever finds the file can connect. Only the owner can read it. */
export async function writeRunFile(dataDir: string, info: RunInfo): Promise<void> {
  await writePrivateFile(join(dataDir, FILE_NAME), `${JSON.stringify(info, undefined, 2)}\n`);
}

/** Removed on a clean stop, and at a start, when a killed instance left it. */
export async function removeRunFile(dataDir: string): Promise<void> {
  await rm(join(dataDir, FILE_NAME), { force: true });
}

/** Undefined when no instance runs in DATA_DIR, as far as the file knows: one that was killed leaves it. */
export async function readRunFile(dataDir: string): Promise<RunInfo | undefined> {
  try {
    return v.parse(RunInfoSchema, JSON.parse(await readFile(join(dataDir, FILE_NAME), 'utf8')));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
