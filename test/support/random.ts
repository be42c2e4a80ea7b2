/** Randomness that can be had again: one seed makes one sequence. Tests print their seed when they fail. */

export interface Random {
  readonly seed: number;
  /** From 0 to below 1. */
  next(): number;
  /** An integer from `least` to `most`, both included. */
  int(least: number, most: number): number;
  pick<T>(values: readonly T[]): T;
  /** True in this share of calls. */
  chance(share: number): boolean;
  /** Another sequence, independent of how far this one has come afterwards. */
  fork(): Random;
}

/** `PLUMBLINE_TEST_SEED`, or one that was never used. */
export function testSeed(): number {
  const given = process.env['PLUMBLINE_TEST_SEED'];
  return given ? Number(given) : Math.floor(Math.random() * 2 ** 32);
}

/** Mulberry32: 32 bits of state are enough to choose what a test does next. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    seed,
    next,
    int: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (values) => pick(values, next()),
    chance: (share) => next() < share,
    fork: () => seededRandom(Math.floor(next() * 2 ** 32)),
  };

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

function pick<T>(values: readonly T[], share: number): T {
  const index = Math.floor(share * values.length);
  if (index >= values.length) throw new RangeError('nothing to pick from');
  return values[index] as T;
}
