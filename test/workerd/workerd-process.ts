/** The processes under `npm run edge`: wrangler's two, and two of workerd, of which the one in front knows no worker. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Kills one of the two at once: the workerd that runs the worker, or the one in front of it. */
export async function killWorkerd(edgePid: number, which: 'worker' | 'front'): Promise<void> {
  const family = await descendantsOf(edgePid);
  const port = family.map(({ command }) => / dev .* --port=(\d+) /.exec(command)?.[1]).find((found) => found);
  const found = family.filter(
    ({ command }) =>
      command.includes('workerd serve ') && `${command} `.includes(`entry=127.0.0.1:${port} `) === (which === 'front'),
  );
  if (found.length !== 1) throw new Error(`one workerd was to be found, not ${found.length}`);
  for (const { pid } of found) process.kill(pid, 'SIGKILL');
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
