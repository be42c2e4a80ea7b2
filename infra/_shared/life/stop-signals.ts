/** SIGTERM and SIGINT: the first asks for a stop, a second one ends the process at once. */

// Ctrl-C under `npm start` reaches us twice: the terminal sends it to the whole group, and npm passes its own on.
const ECHO_MS = 500;
const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];

/** Installs the handlers, once per process. The promise resolves with the first signal. */
export function waitForStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    const handle = (signal: NodeJS.Signals): void => {
      if (firstMs === undefined) {
        firstMs = performance.now();
        resolve(signal);
      } else if (performance.now() - firstMs > ECHO_MS) {
        process.exit(1);
      }
    };
    for (const signal of SIGNALS) process.on(signal, handle);
  });
}
