/** What a member of the chaos makes of an event: the same wherever and whenever it comes, as a consumer with a fault would. */

export type Verdict = 'ack' | 'nack' | 'stall';

export const MAX_ATTEMPTS = 6;

const POISON_SHARE = 1 / 2_000;
const NACK_SHARE = 1 / 300;
const STALL_SHARE = 1 / 4_000;

/** No attempt of it succeeds. */
export function isPoison(uid: string, seq: number): boolean {
  return chanceOf(`poison ${uid} ${seq}`) < POISON_SHARE;
}

/** Stalled ones are never answered: their member is ended by the server. */
export function verdictOn(uid: string, seq: number, attempt: number): Verdict {
  if (isPoison(uid, seq)) return 'nack';
  const chance = chanceOf(`${uid} ${seq} ${attempt}`);
  if (chance < NACK_SHARE) return 'nack';
  return chance < NACK_SHARE + STALL_SHARE && attempt === 1 ? 'stall' : 'ack';
}

/** FNV-1a, mixed: from 0 to below 1. */
function chanceOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
