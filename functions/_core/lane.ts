/** Lanes: the parts of a stream that the members of a group share. All events of one object are in one lane. */

/** How many a stream has. Positions are kept by lane, so the number cannot be changed. */
export const LANES_PER_STREAM = 16;

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** The lane of an object: FNV-1a of its uid, which spreads random and time-ordered uids alike. */
export function laneOf(uid: string): number {
  let hash = FNV_OFFSET;
  for (let index = 0; index < uid.length; index += 1) hash = Math.imul(hash ^ uid.charCodeAt(index), FNV_PRIME);
  return (hash ^ (hash >>> 16)) & (LANES_PER_STREAM - 1);
}
