/** An alarm for the nearest of several times. */

export interface Timer {
  /** Also in so many milliseconds; undefined: not. */
  in(milliseconds: number | undefined): void;
  clear(): void;
}

/** @param ring is called at the nearest time that was asked for, once; later times are to be asked for anew. */
export function createTimer(ring: () => void): Timer {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let atMs = Infinity;
  return {
    in(milliseconds): void {
      if (milliseconds === undefined || performance.now() + milliseconds >= atMs) return;
      clearTimeout(timer);
      atMs = performance.now() + milliseconds;
      timer = setTimeout(fire, milliseconds);
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
