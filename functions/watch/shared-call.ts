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

/** The same for calls with arguments: those with equal keys are shared. Nothing is kept once all askers have their answer. */
export function shareCallsByKey<Args extends readonly unknown[], T>(
  keyOf: (...args: Args) => string,
  call: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  const shared = new Map<string, { readonly ask: () => Promise<T>; askers: number }>();
  return async (...args) => {
    const key = keyOf(...args);
    const known = shared.get(key) ?? { ask: shareCalls(() => call(...args)), askers: 0 };
    shared.set(key, known);
    known.askers += 1;
    try {
      return await known.ask();
    } finally {
      known.askers -= 1;
      if (known.askers === 0) shared.delete(key);
    }
  };
}
