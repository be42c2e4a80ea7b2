/**
 * How long a member leaves something unacked. Whoever works one by one has the whole time for each event: its clock runs
 * from when it was delivered and everything before it was acked.
 */

import type { Delivery } from '#functions/watch/groups/member/lane.ts';

/** Another process may have taken the ack: before the member is ended, this long is left to find out. */
const LAST_LOOK_MS = 1_000;

export class AckClock {
  readonly #ackWaitMs: number;
  #oldest: { readonly index: number; readonly sinceMs: number; lookedAtMs: number | undefined } | undefined;

  constructor(ackWaitMs: number) {
    this.#ackWaitMs = ackWaitMs;
  }

  /** `look` once, when the time is over; `over` when nothing was found then. */
  read(oldest: Delivery | undefined, nowMs: number): 'running' | 'look' | 'over' {
    if (!oldest) {
      this.#oldest = undefined;
      return 'running';
    }
    if (oldest.index !== this.#oldest?.index) {
      this.#oldest = { index: oldest.index, sinceMs: nowMs, lookedAtMs: undefined };
    }
    if (!this.#oldest || nowMs - this.#oldest.sinceMs < this.#ackWaitMs) return 'running';
    if (this.#oldest.lookedAtMs === undefined) {
      this.#oldest.lookedAtMs = nowMs;
      return 'look';
    }
    return nowMs - this.#oldest.lookedAtMs >= LAST_LOOK_MS ? 'over' : 'running';
  }
}
