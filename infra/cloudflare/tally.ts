/**
 * What an isolate has answered. It has no metrics of its own, for nobody can ask it, and it may be gone at any time: so it
 * tells the one object that is asked, every few seconds. What it had not told when it was killed is not counted.
 */

export interface Answered {
  readonly method: string;
  readonly code: number;
  /** Until the answer; of a watch, until its first byte. */
  readonly seconds: number;
}

export interface Tally {
  readonly answers: readonly Answered[];
  /** How many requests were over the limit of a tenant. */
  readonly refused: number;
}

export interface IsolateTally {
  answered(answer: Answered): void;
  refused(): void;
  /** Belongs behind each answer: one of those that come within some seconds waits, and tells for all. */
  tell(): Promise<void>;
}

/** There may be hundreds of isolates, and one object that counts; what is asked of it is asked every 15 s or so. */
const TELL_AFTER_MS = 5_000;
/** Whoever waited for so long was killed. */
const LOST_AFTER_MS = 15_000;
/** Clients make up methods, and each would be a series of its own. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export function createTally(send: (tally: Tally) => Promise<void>): IsolateTally {
  let answers: Answered[] = [];
  let refused = 0;
  let waitsSinceMs: number | undefined;
  return {
    answered: ({ method, ...answer }) =>
      void answers.push({ method: METHODS.has(method) ? method : 'other', ...answer }),
    refused: () => void refused++,
    async tell() {
      const nowMs = Date.now();
      if (waitsSinceMs !== undefined && nowMs - waitsSinceMs < LOST_AFTER_MS) return;
      waitsSinceMs = nowMs;
      await new Promise((resolve) => setTimeout(resolve, TELL_AFTER_MS));
      waitsSinceMs = undefined;
      const told = { answers, refused };
      answers = [];
      refused = 0;
      await send(told);
    },
  };
}
