/** Tells the store of a pass's end, again and again while the lease lasts: its result must not be lost to a short outage. */

import type { FinishOutcome, PassEnd } from '#core/ports/work-queue.ts';
import { isUnavailable } from '#core/status-error.ts';
import { pause } from '#loop/pause.ts';
import type { PassOptions } from '#functions/reconcile/pass.ts';
import { failed } from '#functions/reconcile/verdict.ts';
import { Findings } from '#functions/reconcile/findings.ts';

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 2_000;

/** @throws what the store threw last, once the lease is over. */
export async function finishPass(options: PassOptions, end: PassEnd): Promise<FinishOutcome> {
  const { deps, pass, passSignal } = options;
  for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
    try {
      return await deps.queue.finish(pass, end);
    } catch (error) {
      if (!isUnavailable(error)) return deps.queue.finish(pass, refused(options, end, error));
      if (!passSignal.isHeld) throw error;
      await pause(retryMs, NEVER);
    }
  }
}

const NEVER: AbortSignal = new AbortController().signal;

/** What the pass reported is not taken, which is a fault of its controller: the object is told of that alone. */
function refused({ controller, pass }: PassOptions, end: PassEnd, error: unknown): PassEnd {
  const findings = new Findings(pass.row.generation, []);
  const isDeleting = pass.row.deletionTimestamp !== null;
  const verdict = failed(controller, findings, { error, attempts: pass.attempts, isDeleting, hide: (text) => text });
  const { result: _, ...rest } = verdict;
  const conditions = [...findings.conditions.values()];
  return {
    ...rest,
    generation: end.generation,
    report: { conditions, removedConditions: [], fields: {}, removedFields: [] },
    events: [],
    ...(end.keepLease !== undefined && { keepLease: end.keepLease }),
  };
}
