/** Cursor keys as text, for files and environment variables: `0:<43 characters> 1:<43 characters>@2026-11-30T12:00:00Z`. */

import {
  type CursorKey,
  type CursorKeyRing,
  type CursorKeys,
  type CursorKeyState,
  MAX_KEY_SPAN,
} from '#core/ports/cursor-keys.ts';

export type DatedCursorKey = CursorKey & CursorKeyState;

export const CURSOR_KEYS_FORM: string =
  'keys in the order of their ids, by white space or commas, each as id:key or id:key@time-from-which-it-seals, ' +
  'such as 1:<32 bytes in base64url>@2026-11-30T12:00:00Z';

const ENTRY = /^(\d{1,5}):([\w-]{43})(?:@(.+))?$/;
const ALWAYS = new Date(0);

/** @throws {RangeError} naming the entry by its number: never a key. */
export function parseCursorKeys(text: string): readonly DatedCursorKey[] {
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
  if (entries.length === 0) throw new RangeError(`there is no key; expected ${CURSOR_KEYS_FORM}`);
  const keys = entries.map(parseEntry);
  keys.reduce((before, next, index) => {
    if (next.id > before.id) return next;
    throw new RangeError(`key ${index + 1} has id ${next.id} behind ${before.id}; ids rise, each is there once`);
  });
  const span = (keys.at(-1)?.id ?? 0) - (keys[0]?.id ?? 0) + 1;
  if (span > MAX_KEY_SPAN) throw new RangeError(`ids span ${span}; ${MAX_KEY_SPAN} at most: remove the oldest keys`);
  return keys;
}

function parseEntry(entry: string, index: number): DatedCursorKey {
  const [, id = '', encoded = '', time] = ENTRY.exec(entry) ?? [];
  const key = Buffer.from(encoded, 'base64url');
  const sealsFrom = time === undefined ? ALWAYS : new Date(time);
  if (key.length !== 32 || key.toString('base64url') !== encoded || Number.isNaN(sealsFrom.getTime())) {
    throw new RangeError(`key ${index + 1} is malformed; expected ${CURSOR_KEYS_FORM}`);
  }
  return { id: Number(id), key, sealsFrom };
}

export function formatCursorKeys(keys: readonly DatedCursorKey[]): string {
  return keys
    .map(({ id, key, sealsFrom }) => {
      const time = sealsFrom.getTime() === 0 ? '' : `@${sealsFrom.toISOString()}`;
      return `${id}:${Buffer.from(key).toString('base64url')}${time}\n`;
    })
    .join('');
}

/** The ring of these keys at a time of day, in milliseconds since the epoch. */
export function ringAt(keys: readonly DatedCursorKey[], epochMs: number): CursorKeyRing {
  const sealing = keys.findLast(({ sealsFrom }) => sealsFrom.getTime() <= epochMs) ?? keys[0];
  if (!sealing) throw new RangeError('there is no key');
  return { keys, sealingId: sealing.id };
}

/** Those of a text that stays as it is; times are compared with this machine's clock. @throws {RangeError} as the parser does. */
export function textCursorKeys(text: string): CursorKeys {
  const keys = parseCursorKeys(text);
  return { read: async () => ringAt(keys, Date.now()) };
}
