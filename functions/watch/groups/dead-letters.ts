/** What the members of this process have to do with dead letters in the database: they make them, and deliver them again. */

import type { DeadLetter, Membership, Parking, Retry, WatchGroups } from '#core/ports/watch-groups.ts';
import { isUnavailable } from '#core/status-error.ts';
import { pause } from '#loop/pause.ts';
import type { Lane } from '#functions/watch/groups/member/lane.ts';

export interface DeadLettersDeps {
  readonly groups: Pick<WatchGroups, 'park' | 'deliverDeadLetters'>;
  /** Something may have changed in the group. */
  readonly reload: (group: bigint) => void;
  /** A group has as many dead letters as it may have: lanes of it stand still. Told once a minute while it is so. */
  readonly onDeadLettersFull: (group: bigint) => void;
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
}

const RETRY_MS = 1_000;
/** A lane stands still until there is room for another dead letter. */
const FULL_RETRY_MS = 5_000;
const FULL_TOLD_MS = 60_000;

export class DeadLetters {
  readonly #deps: DeadLettersDeps;
  /** By group. */
  readonly #fullToldAtMs = new Map<bigint, number>();

  constructor(deps: DeadLettersDeps) {
    this.#deps = deps;
  }

  /** See `GroupKeeper.park`. */
  async park(lane: Lane, parking: Parking): Promise<void> {
    const { groups, reload, signal } = this.#deps;
    try {
      const result = await groups.park(lane.held, parking);
      if (result === 'Parked') {
        lane.parked(parking.point);
        return;
      }
      if (result === 'Full') {
        this.#tellFull(lane.held.group);
        await pause(FULL_RETRY_MS, signal);
      } else {
        lane.hasBegunAnew = true;
        reload(lane.held.group);
      }
    } catch (error) {
      await this.#failed(error);
    }
    lane.notParked();
  }

  /** See `GroupKeeper.deadLetters`. */
  async deliver({ group, member }: Membership, retries: readonly Retry[]): Promise<readonly DeadLetter[] | undefined> {
    try {
      return await this.#deps.groups.deliverDeadLetters(member, retries);
    } catch (error) {
      await this.#failed(error);
      // They may have been counted as delivered, with other fences.
      this.#deps.reload(group);
      return undefined;
    }
  }

  #tellFull(group: bigint): void {
    const nowMs = performance.now();
    if (nowMs - (this.#fullToldAtMs.get(group) ?? -Infinity) < FULL_TOLD_MS) return;
    this.#fullToldAtMs.set(group, nowMs);
    this.#deps.onDeadLettersFull(group);
  }

  async #failed(error: unknown): Promise<void> {
    if (!isUnavailable(error)) this.#deps.onError(error);
    await pause(RETRY_MS, this.#deps.signal);
  }
}
