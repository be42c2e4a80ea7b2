/**
 * The clock of workerd: it stands still while code runs, and moves when the event loop turns. Here it shows what it showed
 * when it was first looked at in a turn.
 *
 * @see https://developers.cloudflare.com/workers/runtime-apis/web-standards/#timing
 */

import { vi } from 'vitest';

/** Until `vi.restoreAllMocks()`. */
export function standStill(): void {
  const [monotonic, epoch] = [performance.now.bind(performance), Date.now];
  let shown: { readonly nowMs: number; readonly epochMs: number } | undefined;
  const look = (): { readonly nowMs: number; readonly epochMs: number } => {
    if (!shown) {
      shown = { nowMs: monotonic(), epochMs: epoch() };
      setImmediate(() => (shown = undefined)).unref();
    }
    return shown;
  };
  vi.spyOn(performance, 'now').mockImplementation(() => look().nowMs);
  vi.spyOn(Date, 'now').mockImplementation(() => look().epochMs);
}
