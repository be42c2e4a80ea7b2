/**
 * A piece of work that meets an accident between two of its awaits. What it reaches for is wrapped: each call is two steps,
 * `asked` before it is made and `answered` behind it, and at one of them the accident happens.
 */

/** Such as the second `queue.claim asked`. */
export interface Step {
  readonly name: string;
  /** From 1. */
  readonly time: number;
}

export interface Accident {
  /** The asynchronous methods of a port, each with its steps. */
  around<Port extends object>(port: Port, name: string): Port;
  /** Resolves when it happens. */
  readonly happened: Promise<void>;
  /** How many times each step was reached, until the accident. */
  readonly times: ReadonlyMap<string, number>;
  /** The steps at which the work stands still. */
  readonly stuck: readonly string[];
  /** Resolves when everything that was sent before it stood still is done, and answered to nobody. */
  quiet(): Promise<void>;
  /** The work goes on where it stood still. */
  goOn(): void;
}

type Method = (...args: unknown[]) => Promise<unknown>;

/** @param happen `stands still`: the work gets no further with whatever it does at once, until it is told to go on. */
export function accidentAt(step: Step | undefined, happen: () => 'goes on' | 'stands still'): Accident {
  const times = new Map<string, number>();
  const stuck: string[] = [];
  const underWay = new Set<Promise<unknown>>();
  const happened = Promise.withResolvers<void>();
  let standstill: PromiseWithResolvers<void> | undefined;
  return {
    around<Port extends object>(port: Port, name: string): Port {
      const methods = Object.entries(port).map(([method, call]) => [method, withSteps(`${name}.${method}`, call)]);
      return Object.fromEntries(methods) as Port;
    },
    happened: happened.promise,
    times,
    stuck,
    async quiet() {
      await Promise.allSettled(underWay);
    },
    goOn: () => standstill?.resolve(),
  };

  function withSteps(name: string, call: Method): Method {
    return async (...args) => {
      await reach(`${name} asked`);
      const answer = call(...args);
      underWay.add(answer);
      try {
        return await answer;
      } finally {
        underWay.delete(answer);
        await reach(`${name} answered`);
      }
    };
  }

  async function reach(name: string): Promise<void> {
    if (!standstill) {
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      if (step?.name === name && step.time === time) {
        if (happen() === 'stands still') standstill = Promise.withResolvers();
        happened.resolve();
      }
    }
    if (!standstill) return;
    stuck.push(name);
    await standstill.promise;
  }
}
