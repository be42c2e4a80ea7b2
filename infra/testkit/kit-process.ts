/**
 * A process that runs passes, as far as a crash goes: what it has sent is sent, and nothing of it goes on. It is told apart
 * from others, and from the test itself, by the asynchronous context that its code runs in.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { PassSignal } from '#functions/reconcile/pass-signal.ts';
import { PassTimedOut, ProcessStops } from '#functions/reconcile/pass-signal.ts';

export interface KitProcess {
  readonly isDead: boolean;
  /** Resolves when it dies. */
  readonly died: Promise<void>;
  /** The pass that it runs. */
  current: PassSignal | undefined;
  /** Runs code as part of this process. */
  run<Value>(code: () => Promise<Value>): Promise<Value>;
  /** Keeps account of something that was sent: a crash does not take it back. */
  sent<Value>(call: Promise<Value>): Promise<Value>;
  /** Resolves when all that was sent has arrived. */
  arrived(): Promise<void>;
  /** From now on nothing of it has an effect. */
  die(): void;
  /** The pass runs out of time, now. */
  timeOut(): void;
}

const storage = new AsyncLocalStorage<KitProcess>();

/** The process whose code runs now; undefined in code of the test. */
export function currentProcess(): KitProcess | undefined {
  return storage.getStore();
}

/** What code of a dead process waits for. */
export function never(): Promise<never> {
  return new Promise(() => undefined);
}

export function startProcess(): KitProcess {
  const inFlight = new Set<Promise<unknown>>();
  let isDead = false;
  let tellDeath = (): void => undefined;
  const died = new Promise<void>((resolve) => (tellDeath = resolve));
  const self: KitProcess = {
    get isDead() {
      return isDead;
    },
    died,
    current: undefined,
    run: (code) => storage.run(self, code),
    async sent(call) {
      inFlight.add(call);
      try {
        return await call;
      } finally {
        inFlight.delete(call);
      }
    },
    async arrived() {
      await Promise.allSettled(inFlight);
    },
    die() {
      isDead = true;
      // Connections that end with the signal close, as the system closes those of a dead process.
      storage.run(self, () => self.current?.end(new ProcessStops('the process was killed by the test kit')));
      tellDeath();
    },
    timeOut() {
      storage.run(self, () => self.current?.end(new PassTimedOut('the test kit let the time of the pass run out')));
    },
  };
  return self;
}
