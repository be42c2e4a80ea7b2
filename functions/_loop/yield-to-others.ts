/** Between two slices of long work. */

/** Resolves once what waits for this thread has had its turn. */
export function yieldToOthers(): Promise<void> {
  return new Promise((resolve) => {
    // A timer of 0 ms takes a whole one on Node; not every runtime has the other.
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve);
  });
}
