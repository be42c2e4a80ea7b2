/** What a pass says of itself when it ends. */

import * as v from 'valibot';

/** A reason is one word in PascalCase; the message is for people. */
export interface Explanation {
  readonly reason: string;
  readonly message: string;
}

/** Nothing: all is as it should be. */
export interface ReconcileResult {
  /** Not ready, for no fault of this pass: something else has to happen first. */
  readonly notReady?: Explanation | undefined;
  /** Look again after this long, in milliseconds, whatever happens; a change comes first. */
  readonly requeueAfterMs?: number | undefined;
}

/**
 * Only `finalized: true` lets the object go: everything that this controller has made was seen to be absent in this very
 * pass. Otherwise it says what it waits for.
 */
export type FinalizeResult =
  | { readonly finalized: true }
  | { readonly finalized: false; readonly blocked: Explanation; readonly requeueAfterMs?: number | undefined };

/**
 * The spec asks for what can never be: no other attempt before the spec changes, the object is deleted, or somebody asks
 * for one. The world is still looked at, at each resync.
 */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
  /** Of the condition, in PascalCase. */
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

const MAX_REQUEUE_MS = 30 * 24 * 3_600_000;
export const REASON: RegExp = /^[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?$/;

const explanation = v.strictObject({ reason: v.pipe(v.string(), v.regex(REASON)), message: v.string() });
const requeueAfterMs = v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(MAX_REQUEUE_MS)));
const reconcileResult = v.optional(v.strictObject({ notReady: v.optional(explanation), requeueAfterMs }), {});
const finalizeResult = v.variant('finalized', [
  v.strictObject({ finalized: v.literal(true) }),
  v.strictObject({ finalized: v.literal(false), blocked: explanation, requeueAfterMs }),
]);

/** @throws {TypeError} naming what is wrong: functions in JavaScript may return anything. */
export function readReconcileResult(returned: unknown): ReconcileResult {
  return read(reconcileResult, returned, 'reconcile() must return nothing, or { notReady?, requeueAfterMs? }');
}

/** @throws {TypeError} as above; returning nothing is no proof that all is gone. */
export function readFinalizeResult(returned: unknown): FinalizeResult {
  return read(finalizeResult, returned, 'finalize() must return { finalized: true }, or { finalized: false, blocked }');
}

function read<Result>(schema: v.GenericSchema<unknown, Result>, returned: unknown, rule: string): Result {
  // An array would pass for an object without fields.
  const result = v.safeParse(schema, Array.isArray(returned) ? null : returned);
  if (result.success) return result.output;
  const [issue] = result.issues;
  const field = v.getDotPath(issue);
  throw new TypeError(`${rule}${field === null ? '' : `; ${field}`}: ${issue.message}`);
}
