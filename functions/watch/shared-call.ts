/** One call for many askers. */

/**
 * The same call, shared: at most one runs and one waits behind it, and whoever asks gets the result of one that began
 * after the question.
 */
export function shareCalls<T>(call: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  let waiting: Promise<T> | undefined;
  return () => (waiting ??= running.then(begin));

  function begin(): Promise<T> {
    waiting = undefined;
    const called = call();
    running = called.catch(() => undefined);
    return called;
  }
}
