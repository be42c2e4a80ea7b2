/** The ring of cursor keys in a file, such as a mounted secret. */

import { randomBytes } from 'node:crypto';
import { chmod, chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { type DatedCursorKey, formatCursorKeys, parseCursorKeys, ringAt } from '#adapters/node/cursor-key-text.ts';
import {
  type CursorKeyAdmin,
  type CursorKeys,
  type CursorKeyState,
  MAX_KEY_SPAN,
  RENEWAL_GAP,
  RETIRE_AFTER_MS,
  type Retirement,
} from '#core/ports/cursor-keys.ts';

/** Times are compared with this machine's clock. */
export function fileCursorKeys(path: string): CursorKeys {
  return { read: async () => ringAt(await readKeys(path), Date.now()) };
}

/** For one operator at a time. A reader sees the old file or the new one. */
export function fileCursorKeyAdmin(path: string): CursorKeyAdmin {
  return { list, rotate, retire, renew };

  async function list(): Promise<readonly CursorKeyState[]> {
    return (await readKeys(path)).map(({ id, sealsFrom }) => ({ id, sealsFrom }));
  }

  async function rotate(leadMs: number): Promise<CursorKeyState | undefined> {
    const keys = await readKeys(path).catch(noneWhenAbsent);
    const [oldest, newest] = [keys[0], keys.at(-1)];
    if (oldest && newest && newest.id - oldest.id + 1 >= MAX_KEY_SPAN) return undefined;
    const sealsFrom = newest ? new Date(Date.now() + leadMs) : new Date();
    const added: DatedCursorKey = { id: newest ? newest.id + 1 : 0, key: randomBytes(32), sealsFrom };
    await replace([...keys, added]);
    return { id: added.id, sealsFrom };
  }

  async function retire(id: number): Promise<Retirement> {
    const keys = await readKeys(path);
    if (!keys.some((key) => key.id === id)) return 'unknown';
    const replacedBeforeMs = Date.now() - RETIRE_AFTER_MS;
    if (!keys.some((key) => key.id > id && key.sealsFrom.getTime() <= replacedBeforeMs)) return 'in use';
    await replace(keys.filter((key) => key.id !== id));
    return 'retired';
  }

  async function renew(): Promise<CursorKeyState> {
    const newest = (await readKeys(path).catch(noneWhenAbsent)).at(-1);
    const added = { id: newest ? newest.id + RENEWAL_GAP : 0, key: randomBytes(32), sealsFrom: new Date() };
    await replace([added]);
    return { id: added.id, sealsFrom: added.sealsFrom };
  }

  async function replace(keys: readonly DatedCursorKey[]): Promise<void> {
    const temporary = `${path}.${randomBytes(4).toString('hex')}`;
    try {
      await writeFile(temporary, formatCursorKeys(keys), { mode: 0o600, flush: true });
      await takeRights(path, temporary);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}

/** Servers may read it under another account, or as members of its group. */
async function takeRights(path: string, temporary: string): Promise<void> {
  const existing = await stat(path).catch(() => undefined);
  if (!existing) return;
  // Only root can give it to another account; an owner's own group is all that others can keep.
  const own = await stat(temporary);
  if (existing.uid !== own.uid || existing.gid !== own.gid) await chown(temporary, existing.uid, existing.gid);
  await chmod(temporary, existing.mode & 0o777);
}

async function readKeys(path: string): Promise<readonly DatedCursorKey[]> {
  const text = await readFile(path, 'utf8');
  try {
    return parseCursorKeys(text);
  } catch (error) {
    throw new RangeError(`${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function noneWhenAbsent(error: unknown): readonly DatedCursorKey[] {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
  throw error;
}
