/**
 * Objects that are gone, so that what is told of them late does not raise them. A uid is never used again, but a selector
 * lets an object come back: with a later version.
 */

import { compareVersions, type EventType } from '#infra/client/objects.ts';

export interface Tombstones {
  /** @param version of the deletion; undefined when only the absence was seen. */
  add(uid: string, version: string | undefined): void;
  /** Whether an object of this version is one that is gone. What comes back has its tombstone removed. */
  holds(uid: string, version: string, seenBy: EventType | 'list'): boolean;
  /** A new list tells what is there. */
  forgetUnseen(): void;
  /** The database was restored: what was deleted may be there again. */
  forgetAll(): void;
}

/** What lags is at most seconds behind. */
const KEPT = 10_000;

export function createTombstones(): Tombstones {
  const seen = new Map<string, string>();
  const unseen = new Set<string>();
  return {
    add(uid, version) {
      if (version === undefined) {
        unseen.add(uid);
        return;
      }
      unseen.delete(uid);
      seen.delete(uid);
      seen.set(uid, version);
      const [oldest] = seen.keys();
      if (seen.size > KEPT && oldest !== undefined) seen.delete(oldest);
    },
    holds(uid, version, seenBy) {
      // A list leaves out what was deleted while it was read. The watch behind it begins before that, and tells of the
      // object's changes until then; only an entry into the selection is none of them.
      if (unseen.has(uid) && (seenBy === 'MODIFIED' || seenBy === 'DELETED')) return true;
      const deletion = seen.get(uid);
      if (deletion !== undefined && compareVersions(version, deletion) <= 0) return true;
      unseen.delete(uid);
      seen.delete(uid);
      return false;
    },
    forgetUnseen() {
      unseen.clear();
    },
    forgetAll() {
      unseen.clear();
      seen.clear();
    },
  };
}
