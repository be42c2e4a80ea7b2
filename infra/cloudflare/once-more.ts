/** Work that is asked for again while it runs, and then runs once more: never beside itself. */

/** @returns a function that resolves when a run has ended that began after the call, and rejects when that one failed. */
export function onceMore(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  return function ask(): Promise<void> {
    if (!running) return (running = run());
    next ??= running.then(goOn, goOn);
    return next;
  };

  function goOn(): Promise<void> {
    next = undefined;
    return (running = run());
  }

  async function run(): Promise<void> {
    try {
      await work();
    } finally {
      if (!next) running = undefined;
    }
  }
}
