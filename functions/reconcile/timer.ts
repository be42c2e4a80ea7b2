/** An alarm for the nearest of several times. */

export interface Timer {
  /** Also in so many milliseconds; undefined: not. */
  in(milliseconds: number | undefined): void;
  clear(): void;
}

/** Of a timer of JavaScript, 24.8 days: a longer one would ring at once. It rings too early then, and is asked anew. */
const LONGEST_MS = 2 ** 31 - 1;

/** @param ring is called at the nearest time that was asked for, once; later times are to be asked for anew. */
export function createTimer(ring: () => void): Timer {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let atMs = Infinity;
  return {
    in(milliseconds): void {
      if (milliseconds === undefined || performance.now() + milliseconds >= atMs) return;
      clearTimeout(timer);
      const waitMs = Math.min(milliseconds, LONGEST_MS);
      atMs = performance.now() + waitMs;
      timer = setTimeout(fire, waitMs);
    },
    clear(): void {
      clearTimeout(timer);
      atMs = Infinity;
    },
  };

  function fire(): void {
    atMs = Infinity;
    ring();
  }
}
