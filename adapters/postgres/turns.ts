/** Turns at something scarce: so many at once, a share of them for each owner, and a queue that no owner can fill for others. */

export interface TurnsOptions {
  readonly maxOpen: number;
  /** What one owner may have at once. */
  readonly maxPerOwner: number;
  /** How long one waits for a turn. */
  readonly patienceMs: number;
}

export interface Turns {
  /**
   * Resolves with the way to end the turn; ending it twice is harmless.
   * @throws {NoTurn} when none was to be had in time.
   */
  take(owner: string): Promise<() => void>;
}

/** All turns were taken, by this owner or by all. */
export class NoTurn extends Error {
  override readonly name = 'NoTurn';
}

interface Waiting {
  readonly owner: string;
  readonly serve: () => void;
}

export function createTurns({ maxOpen, maxPerOwner, patienceMs }: TurnsOptions): Turns {
  const openOf = new Map<string, number>();
  const waiting: Waiting[] = [];
  let open = 0;
  return { take };

  async function take(owner: string): Promise<() => void> {
    if (hasRoom(owner)) begin(owner);
    else await wait(owner);
    let isOver = false;
    return () => {
      if (!isOver) end(owner);
      isOver = true;
    };
  }

  function hasRoom(owner: string): boolean {
    return open < maxOpen && (openOf.get(owner) ?? 0) < maxPerOwner;
  }

  function begin(owner: string): void {
    open += 1;
    openOf.set(owner, (openOf.get(owner) ?? 0) + 1);
  }

  async function wait(owner: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const expiry = setTimeout(() => {
        waiting.splice(waiting.indexOf(entry), 1);
        reject(new NoTurn(`no turn within ${patienceMs} ms`));
      }, patienceMs);
      const entry: Waiting = {
        owner,
        serve() {
          clearTimeout(expiry);
          begin(owner);
          resolve();
        },
      };
      waiting.push(entry);
    });
  }

  function end(owner: string): void {
    open -= 1;
    const left = (openOf.get(owner) ?? 1) - 1;
    if (left > 0) openOf.set(owner, left);
    else openOf.delete(owner);
    // The first who may: one owner's queue does not hold up another's.
    const next = waiting.findIndex((entry) => hasRoom(entry.owner));
    if (next >= 0) waiting.splice(next, 1)[0]?.serve();
  }
}
