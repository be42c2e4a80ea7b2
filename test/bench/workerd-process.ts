/** The workerd under `npm run edge` that runs the worker: what it holds in memory. Linux only. */

import { readdir, readFile, readlink } from 'node:fs/promises';
import type { Instance } from '#test/bench/instance.ts';
import { descendantsOf } from '#test/workerd/workerd-process.ts';

/** As workerd's inspector names the worker that wrangler.jsonc describes. */
const WORKER = 'core:user:plumbline';
/** A collection of all garbage takes seconds where others use the processor too. */
const PATIENCE_MS = 15_000;
const ATTEMPTS = 5;

export interface WorkerdProcess {
  readonly pid: number;
  /** Bytes of the isolate's heap after a collection, with what is outside of it and counted to it. */
  heapBytes(): Promise<number>;
}

/** @param edge of which the process is the one that started wrangler. @throws when there is none. */
export async function findWorkerd(edge: Instance): Promise<WorkerdProcess> {
  for (const { pid } of await descendantsOf(edge.pid)) {
    for (const port of await listeningPorts(pid)) {
      const url = `ws://127.0.0.1:${port}/${WORKER}`;
      if (await isInspector(port)) return { pid, heapBytes: () => withPatience(() => heapBytes(url)) };
    }
  }
  throw new Error(`no workerd with an inspector of ${WORKER} runs under process ${edge.pid}`);
}

/** An inspector that is attached while the isolate does nothing may never hear of anything; the next one does. */
async function withPatience<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; attempt < ATTEMPTS; attempt += 1) {
    try {
      return await work();
    } catch {
      // Once more.
    }
  }
  return work();
}

async function listeningPorts(pid: number): Promise<readonly number[]> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const targets = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  const inodes = new Set(targets.map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]));
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
  return lines
    .filter(([, , , state, , , , , , inode]) => state === '0A' && inodes.has(inode))
    .map(([, address = '']) => Number.parseInt(address.split(':')[1] ?? '', 16));
}

async function isInspector(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/json`, { signal: AbortSignal.timeout(2_000) });
    return answer.ok && (await answer.text()).includes(`"id":"${WORKER}"`);
  } catch {
    return false;
  }
}

interface HeapUsage {
  readonly usedSize: number;
  readonly embedderHeapUsedSize?: number;
  readonly backingStorageSize?: number;
}

async function heapBytes(url: string): Promise<number> {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', reject, { once: true });
  });
  try {
    await call(socket, 1, 'HeapProfiler.collectGarbage');
    const usage = (await call(socket, 2, 'Runtime.getHeapUsage')) as HeapUsage;
    return usage.usedSize + (usage.embedderHeapUsedSize ?? 0) + (usage.backingStorageSize ?? 0);
  } finally {
    socket.close();
  }
}

function call(socket: WebSocket, id: number, method: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const expiry = setTimeout(() => reject(new Error(`the inspector did not answer ${method}`)), PATIENCE_MS);
    socket.addEventListener('message', ({ data }: MessageEvent) => {
      const message = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } };
      if (message.id !== id) return;
      clearTimeout(expiry);
      if (message.error) reject(new Error(`${method}: ${message.error.message}`));
      else resolve(message.result);
    });
    socket.send(JSON.stringify({ id, method }));
  });
}
