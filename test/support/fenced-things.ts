/**
 * An external system that heeds fencing tokens: it refuses whoever comes with a lower one than it has seen for the object. It
 * counts passes of one object that overlap.
 */

export interface Actor {
  readonly uid: string;
  readonly fencingToken: bigint;
}

/** As one process sees it. */
export interface Things {
  read(name: string): Promise<number | undefined>;
  /** A pass begins. @throws when a later one was there before, as do `put` and `remove` */
  begin(actor: Actor): Promise<void>;
  put(actor: Actor, name: string, size: number): Promise<void>;
  remove(actor: Actor, name: string): Promise<void>;
  /** It has ended, well or not. */
  end(actor: Actor): Promise<void>;
}

export interface FencedThings {
  readonly all: ReadonlyMap<string, number>;
  /** For a process of this name. */
  as(holder: string): Things;
  /** What this process has begun will not end, as far as anybody knows. */
  giveUp(holder: string): void;
  /** How many deeds came too late. */
  readonly refused: number;
  /** How many passes began before the one before them had ended. */
  readonly overlaps: number;
}

export function fencedThings(): FencedThings {
  const all = new Map<string, number>();
  const newest = new Map<string, bigint>();
  /** Who runs a pass of an object. */
  const running = new Map<string, string>();
  let refused = 0;
  let overlaps = 0;
  return {
    all,
    as: (holder) => ({
      read: async (name) => all.get(name),
      async begin(actor) {
        take(actor);
        if (running.has(actor.uid)) overlaps += 1;
        running.set(actor.uid, holder);
      },
      async put(actor, name, size) {
        take(actor);
        all.set(name, size);
      },
      async remove(actor, name) {
        take(actor);
        all.delete(name);
      },
      async end({ uid, fencingToken }) {
        if (newest.get(uid) === fencingToken) running.delete(uid);
      },
    }),
    giveUp(holder) {
      for (const [uid, by] of running) if (by === holder) running.delete(uid);
    },
    get refused() {
      return refused;
    },
    get overlaps() {
      return overlaps;
    },
  };

  function take({ uid, fencingToken }: Actor): void {
    if (fencingToken < (newest.get(uid) ?? 0n)) {
      refused += 1;
      throw new Error('a later pass was here before');
    }
    newest.set(uid, fencingToken);
  }
}
