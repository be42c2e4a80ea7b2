/** The file that PostgreSQL logs to. */

import { open, rename, stat } from 'node:fs/promises';

const MAX_LOG_BYTES = 10 * 1024 * 1024;
const TAIL_BYTES = 2_000;

/** Sets a file that has grown large aside; the one that was set aside before is lost. */
export async function rotateLog(path: string): Promise<void> {
  if ((await sizeOf(path)) > MAX_LOG_BYTES) await rename(path, `${path}.1`);
}

/** How much there is by now; to be given to `readLogSince`. */
export async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** What was logged after that, in one line, its last 2,000 bytes at most. */
export async function readLogSince(path: string, offset: number): Promise<string> {
  const size = await sizeOf(path);
  const start = Math.max(offset, size - TAIL_BYTES);
  if (size <= start) return '';
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(size - start), position: start });
    return buffer.toString('utf8', 0, bytesRead).trim().replaceAll('\n', ' | ');
  } finally {
    await file.close();
  }
}
