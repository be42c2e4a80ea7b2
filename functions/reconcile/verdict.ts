/** What a pass comes to: the summary condition, and when the object is looked at again. */

import type { PassEnd } from '#core/ports/work-queue.ts';
import { backoffMs } from '#core/reconcile/backoff.ts';
import { OwnershipConflict } from '#core/reconcile/context.ts';
import type { Controller } from '#core/reconcile/controller.ts';
import { ObservationFailed } from '#core/reconcile/observation.ts';
import { type FinalizeResult, REASON, type ReconcileResult, TerminalError } from '#core/reconcile/outcome.ts';
import type { PassResult } from '#functions/reconcile/deps.ts';
import type { Findings } from '#functions/reconcile/findings.ts';
import { PassTimedOut } from '#functions/reconcile/pass-signal.ts';

/** The end of a pass but for its report. */
export type Verdict = Pick<PassEnd, 'finalized' | 'next' | 'error' | 'isTerminal' | 'blocked'> & {
  readonly result: PassResult;
};

const LONGEST_MESSAGE = 1_024;
const RESYNC_JITTER = 0.2;

/**
 * The pass ended by itself and well.
 * @throws {ObservationFailed} when it would be ready, in spite of what it could not see.
 */
export function reconciled(
  controller: Controller,
  findings: Findings,
  { notReady, requeueAfterMs }: ReconcileResult,
): Verdict {
  const { summary } = controller;
  const [unknown] = findings.unknown;
  const said = findings.conditions.get(summary)?.status ?? 'True';
  if (unknown && !notReady && said === 'True') {
    throw new ObservationFailed(
      `${unknown.class} ${unknown.id} cannot be read: ${unknown.message ?? 'no reason given'}`,
    );
  }
  findings.removeCondition('OwnershipConflict');
  if (notReady) findings.condition(summary, 'False', notReady.reason, notReady.message);
  else if (!findings.conditions.has(summary)) findings.condition(summary, 'True', 'Reconciled', '');
  return {
    result: notReady ? 'not-ready' : 'done',
    finalized: false,
    isTerminal: false,
    next: nextLook(controller, requeueAfterMs),
  };
}

/** @throws {Error} when it says that all is gone, and not all of it was seen to be. */
export function finalized(controller: Controller, findings: Findings, result: FinalizeResult): Verdict {
  if (result.finalized) {
    const [left] = findings.left;
    if (left) {
      throw new Error(
        `finalize() says that all is gone, but ${left.class} ${left.id} was not seen to be absent in this pass (${left.state}); observe it, or release() it`,
      );
    }
    return { result: 'finalized', finalized: true, isTerminal: false, next: nextLook(controller) };
  }
  findings.condition(controller.summary, 'False', 'Deleting', result.blocked.message);
  return {
    result: 'blocked',
    finalized: false,
    isTerminal: false,
    blocked: result.blocked,
    next: nextLook(controller, result.requeueAfterMs),
  };
}

/** The pass failed. Whatever it had set, its object is not ready. */
export function failed(
  controller: Controller,
  findings: Findings,
  { error, attempts, isDeleting, hide }: FailedOptions,
): Verdict {
  const message = hide(messageOf(error)).slice(0, LONGEST_MESSAGE);
  const reason = reasonOf(error);
  findings.condition(controller.summary, error instanceof ObservationFailed ? 'Unknown' : 'False', reason, message);
  if (error instanceof OwnershipConflict) findings.condition('OwnershipConflict', 'True', reason, message);
  else findings.removeCondition('OwnershipConflict');
  findings.events.push({ type: 'Warning', reason, message });
  const isTerminal = error instanceof TerminalError && !isDeleting;
  return {
    result: isTerminal ? 'terminal' : 'error',
    finalized: false,
    error: `${reason}: ${message}`,
    isTerminal,
    ...(isDeleting && { blocked: { reason: 'FinalizeFailed', message } }),
    next: isTerminal ? nextLook(controller) : retry(attempts),
  };
}

/** Passes of this object never end: what kills every process that takes it up must not do so all the time. */
export function abandoned(attempts: number): Verdict {
  return {
    result: 'skipped',
    finalized: false,
    error: 'Abandoned: the processes that ran the passes before this one died in them, or were frozen',
    isTerminal: false,
    next: retry(attempts),
  };
}

function retry(attempts: number): PassEnd['next'] {
  return { itemClass: 2, afterMs: backoffMs(Math.min(attempts + 1, 30), Math.random()) };
}

export interface FailedOptions {
  readonly error: unknown;
  /** That had failed in a row before it. */
  readonly attempts: number;
  readonly isDeleting: boolean;
  /** Takes secrets out of a text. */
  readonly hide: (text: string) => string;
}

/** The next resync, give or take a fifth, or what the pass asks for if that is sooner. */
export function nextLook({ resyncMs }: Controller, requeueAfterMs?: number): PassEnd['next'] {
  const afterMs = resyncMs * (1 - RESYNC_JITTER + 2 * RESYNC_JITTER * Math.random());
  if (requeueAfterMs === undefined || requeueAfterMs > afterMs) return { itemClass: 3, afterMs };
  return { itemClass: 2, afterMs: requeueAfterMs };
}

function reasonOf(error: unknown): string {
  if (error instanceof TerminalError) return REASON.test(error.reason) ? error.reason : 'InvalidSpec';
  if (error instanceof OwnershipConflict || error instanceof ObservationFailed || error instanceof PassTimedOut) {
    return error.name;
  }
  return 'ReconcileFailed';
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message === '' ? 'an error without a message' : message;
}
