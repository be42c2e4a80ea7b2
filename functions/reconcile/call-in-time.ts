/** Calls a function that may throw, hang, or ignore its signal. */

import { type PassSignal, PassTimedOut } from '#functions/reconcile/pass-signal.ts';

/** How long a function may take to end once its signal has aborted. */
const GRACE_MS = 2_000;

export interface CalledInTime<Value> {
  /** Its value, or why there is none: what it threw, or why its signal aborted. */
  readonly settled: { readonly value: Value } | { readonly error: unknown };
  /** Resolves when the function ends, which it did not do when it was told to. */
  readonly hung?: Promise<void>;
}

/** Never rejects. Resolves within the time and the grace, whatever the function does. */
export async function callInTime<Value>(
  call: () => Promise<Value>,
  passSignal: PassSignal,
  timeoutMs: number,
): Promise<CalledInTime<Value>> {
  const { signal } = passSignal;
  let isRunning = true;
  const running = run();
  const timer = setTimeout(
    () => passSignal.end(new PassTimedOut(`the pass took longer than ${timeoutMs} ms`)),
    timeoutMs,
  );
  const settled = await Promise.race([running, told()]);
  clearTimeout(timer);
  return { settled, ...(isRunning && { hung: running.then(() => undefined) }) };

  async function run(): Promise<CalledInTime<Value>['settled']> {
    try {
      const value = await call();
      // A pass that ended well after it was told to stop is told apart from one in time: its lease may be another's.
      return signal.aborted ? { error: signal.reason } : { value };
    } catch (error) {
      // What it throws then is about the abort.
      return { error: signal.aborted ? signal.reason : error };
    } finally {
      isRunning = false;
    }
  }

  async function told(): Promise<CalledInTime<Value>['settled']> {
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    await new Promise((resolve) => setTimeout(resolve, GRACE_MS));
    const reason: unknown = signal.reason;
    return { error: reason instanceof PassTimedOut ? goesOn(reason) : reason };
  }
}

function goesOn({ message }: PassTimedOut): PassTimedOut {
  return new PassTimedOut(`${message}, and its function goes on: until it ends, nothing is done for the object`);
}
