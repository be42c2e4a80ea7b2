/** What goes wrong with external calls, and how it looks to the one who calls. */

/** Ways in which a call of a pass fails. */
export const FAULTS = ['error', 'denied', 'lost-answer', 'time-out', 'late-success', 'partial-list'] as const;

/**
 * - `error`: rejects, without effect.
 * - `denied`: rejects for want of rights, without effect.
 * - `lost-answer`: takes effect, and rejects.
 * - `time-out`: never answers, until the pass has run out of time; without effect.
 * - `late-success`: the same, and takes effect after the pass has given up.
 * - `partial-list`: a list breaks off in the middle. Other calls are answered as ever.
 */
export type Fault = (typeof FAULTS)[number];

export interface FaultLooks {
  /** As the port throws when the other side is away. @default an Error that says so */
  readonly error?: (call: string) => unknown;
  /** As the port throws when rights are missing. @default an Error that says so */
  readonly denied?: (call: string) => unknown;
  /**
   * A list that was cut, for a port that tells so in its answer. @default an array is not answered at all, as ports are
   * whose lists are complete or throw; an async iterable ends in an error after half of its elements.
   */
  readonly partialList?: (answer: unknown, call: string) => unknown;
}

export function errorOf(looks: FaultLooks, call: string): unknown {
  return looks.error?.(call) ?? new Error(`${call} failed: the test kit lets it`);
}

export function deniedOf(looks: FaultLooks, call: string): unknown {
  return looks.denied?.(call) ?? new Error(`${call} is denied: the test kit lets it`);
}

/** @throws for an array, where the port has no other way to say that it is not all. */
export function cutList(looks: FaultLooks, answer: unknown, call: string): unknown {
  if (looks.partialList) return looks.partialList(answer, call);
  if (!Array.isArray(answer)) return answer;
  throw errorOf(looks, call);
}
