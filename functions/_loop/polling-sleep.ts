/** The sleep of a resident loop that no writer can wake: it looks again after a time. */

import type { WriterSleep } from '#core/ports/writer-sleep.ts';

/** Ends all sleeps once the signal aborts. Nothing is drained in it: writers are never known to notify. */
export function pollingSleep(everyMs: number, signal: AbortSignal): WriterSleep {
  // Latched: a call that comes while nobody sleeps ends the next sleep at once.
  let isCalled = false;
  let end = (): void => undefined;
  signal.addEventListener('abort', () => end(), { once: true });
  return {
    async sleep() {
      if (!isCalled && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, everyMs);
          end = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isCalled = false;
    },
    wake() {
      isCalled = true;
      end();
    },
  };
}
