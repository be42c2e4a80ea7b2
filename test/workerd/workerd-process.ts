/** The processes under `npm run edge`: wrangler's two, and two of workerd, of which the one in front knows no worker. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Kills the workerd that runs the worker, at once. Wrangler starts it again. */
export async function killWorker(edgePid: number, publicUrl: string): Promise<void> {
  const front = `entry=${new URL(publicUrl).host} `;
  const workers = (await descendantsOf(edgePid)).filter(
    ({ command }) => command.includes('workerd serve ') && !`${command} `.includes(front),
  );
  if (workers.length !== 1) throw new Error(`one workerd was to be found, not ${workers.length}`);
  for (const { pid } of workers) process.kill(pid, 'SIGKILL');
}

export async function descendantsOf(pid: number): Promise<readonly Process[]> {
  const all = await processes();
  const found = new Map<number, Process>();
  let before = -1;
  while (found.size > before) {
    before = found.size;
    for (const one of all) if (one.parent === pid || found.has(one.parent)) found.set(one.pid, one);
  }
  return [...found.values()];
}

async function processes(): Promise<readonly Process[]> {
  const { stdout } = await promisify(execFile)('ps', ['-ww', '-eo', 'pid=,ppid=,args='], {
    maxBuffer: 32 * 1024 * 1024,
  });
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, command = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}
