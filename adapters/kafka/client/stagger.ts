/** Ways to the same end, of which one may hang. */

/**
 * Tries them in order, the next one when one fails or has not succeeded for a while: what the first to succeed gives.
 * @param discard what a later one gives.
 * @throws what the last to fail threw.
 */
export async function firstOf<T>(
  attempts: readonly (() => Promise<T>)[],
  staggerMs: number,
  discard: (value: T) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let next = 0;
  let running = 0;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  start();
  return promise;

  function start(): void {
    clearTimeout(timer);
    const attempt = attempts[next];
    if (isOver || !attempt) return;
    next += 1;
    running += 1;
    attempt().then(succeed, fail);
    timer = setTimeout(start, staggerMs);
  }

  function succeed(value: T): void {
    if (isOver) discard(value);
    else end(() => resolve(value));
  }

  function fail(error: unknown): void {
    running -= 1;
    if (next < attempts.length) start();
    else if (running === 0) end(() => reject(error));
  }

  function end(settle: () => void): void {
    isOver = true;
    clearTimeout(timer);
    settle();
  }
}
