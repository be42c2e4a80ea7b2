/**
 * The external calls of passes: counted, and each one the place where a process may die or a call may fail. Calls of the
 * test itself are none of them.
 */

import { currentProcess, type KitProcess, never } from '#infra/testkit/kit-process.ts';
import { cutList, deniedOf, errorOf, type Fault, type FaultLooks } from '#infra/testkit/faults.ts';

export type Plan =
  /** The process dies at the call of this number, counted from 1. */
  | { readonly at: number; readonly crash: 'before' | 'after' }
  /** Calls of this name fail, from this number on. */
  | { readonly at: number; readonly fault: Fault; readonly name: string };

export interface Calls {
  /** Names of those that passes have made since the last `start`, in order. */
  readonly made: readonly string[];
  /** What the plan did: the number of the first call that it hit. */
  readonly hit: number | undefined;
  /** Counts from 1 again, under this plan. */
  start(plan?: Plan): void;
  /** Faults of the plan end; the count goes on. */
  heal(): void;
  /** What passes call meanwhile is not counted, and goes well. */
  uncounted<Value>(work: () => Promise<Value>): Promise<Value>;
  /** Whether a plan names it: then it is a call, whatever it was found to be. */
  isNamed(name: string): boolean;
  /** Makes a call of the given name. @param late makes it as though nobody had given it up. */
  make<Value>(name: string, call: () => PromiseLike<Value>, late?: () => PromiseLike<unknown>): Promise<Value>;
  /** Runs what takes effect late; the passes that gave it up have ended. */
  arriveLate(): Promise<void>;
}

export function createCalls(looks: FaultLooks): Calls {
  let made: string[] = [];
  let plan: Plan | undefined;
  let hit: number | undefined;
  let isCounting = true;
  let late: (() => PromiseLike<unknown>)[] = [];

  return {
    get made() {
      return made;
    },
    get hit() {
      return hit;
    },
    start(next) {
      made = [];
      late = [];
      hit = undefined;
      plan = next;
    },
    heal() {
      plan = undefined;
    },
    async uncounted(work) {
      isCounting = false;
      try {
        return await work();
      } finally {
        isCounting = true;
      }
    },
    isNamed: (name) => plan !== undefined && 'name' in plan && plan.name === name,
    async make(name, call, lateCall = call) {
      const process = currentProcess();
      if (!process) return call();
      if (process.isDead) return never();
      if (!isCounting) return answered(process, call);
      made.push(name);
      const number = made.length;
      if (plan && 'crash' in plan && plan.at === number) {
        hit = number;
        return crash(process, plan.crash, call);
      }
      if (plan && 'fault' in plan && plan.name === name && number >= plan.at) {
        hit ??= number;
        return fail(process, plan.fault, name, call, lateCall);
      }
      return answered(process, call);
    },
    async arriveLate() {
      const due = late;
      late = [];
      // One that fails then is one that never arrived.
      for (const call of due) await Promise.resolve(call()).catch(() => undefined);
    },
  };

  async function crash(
    process: KitProcess,
    when: 'before' | 'after',
    call: () => PromiseLike<unknown>,
  ): Promise<never> {
    if (when === 'after') await process.sent(Promise.resolve(call())).catch(() => undefined);
    process.die();
    return never();
  }

  async function fail<Value>(
    process: KitProcess,
    fault: Fault,
    name: string,
    call: () => PromiseLike<Value>,
    lateCall: () => PromiseLike<unknown>,
  ): Promise<Value> {
    switch (fault) {
      case 'error':
        throw errorOf(looks, name);
      case 'denied':
        throw deniedOf(looks, name);
      case 'lost-answer':
        await answered(process, call);
        throw errorOf(looks, name);
      case 'partial-list':
        return cutList(looks, await answered(process, call), name) as Value;
      case 'late-success':
        late.push(lateCall);
        return outOfTime(process);
      case 'time-out':
        return outOfTime(process);
    }
  }
}

/** The answer, for as long as there is somebody to hear it. */
async function answered<Value>(process: KitProcess, call: () => PromiseLike<Value>): Promise<Value> {
  try {
    const value = await process.sent(Promise.resolve(call()));
    return process.isDead ? await never() : value;
  } catch (error) {
    if (process.isDead) return never();
    throw error;
  }
}

async function outOfTime(process: KitProcess): Promise<never> {
  const signal = process.current?.signal;
  // Not before the pass has begun to wait.
  setImmediate(() => process.timeOut());
  return new Promise((_, reject) => {
    const giveUp = (): void => reject(signal?.reason as Error);
    if (signal?.aborted) giveUp();
    signal?.addEventListener('abort', giveUp, { once: true });
  });
}
