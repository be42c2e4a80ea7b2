/** A publisher that stays: drains, sleeps until there may be work, and never ends on an error. */

import { pause } from '#loop/pause.ts';
import { publishOnce, type PublishDeps } from '#functions/publish/publish-once.ts';
import type { WriterSleep } from '#core/ports/writer-sleep.ts';

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2_000;

export interface ResidentPublisherDeps extends PublishDeps {
  readonly sleep: WriterSleep;
  readonly onError: (error: unknown) => void;
}

/** Runs until the signal aborts; resolves when the batch in flight is done. */
export async function runResidentPublisher(deps: ResidentPublisherDeps, signal: AbortSignal): Promise<void> {
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      await publishOnce(deps, signal);
      await deps.sleep.sleep(drain);
      retryMs = FIRST_RETRY_MS;
    } catch (error) {
      if (signal.aborted) return;
      deps.onError(error);
      await pause(retryMs, signal);
      retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    }
  }

  async function drain(enough: AbortSignal): Promise<void> {
    await publishOnce(deps, AbortSignal.any([signal, enough]));
  }
}
