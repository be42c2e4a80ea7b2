/** When keys change: what members were sent with ids that may open no more is delivered again, with others. */

import type { CursorKeyRing } from '#core/ports/cursor-keys.ts';
import type { HeldLane, WatchGroups } from '#core/ports/watch-groups.ts';
import { Job } from '#functions/watch/groups/job.ts';
import type { GroupSessions } from '#functions/watch/groups/sessions.ts';
import { TokenAge } from '#functions/watch/groups/token-age.ts';

export interface ResealingDeps {
  readonly groups: Pick<WatchGroups, 'beginAnew'>;
  readonly sessions: GroupSessions;
  /** What was delivered until now is counted. */
  readonly noteDeliveries: () => Promise<void>;
  readonly begunAnew: (lanes: readonly HeldLane[]) => void;
  /** Dead letters of these groups are to be delivered again. */
  readonly reload: (groups: readonly bigint[]) => void;
  readonly onError: (error: unknown) => void;
}

export class Resealing {
  readonly #deps: ResealingDeps;
  readonly #tokenAge = new TokenAge();
  readonly #job: Job;
  /** Ack tokens from before this moment may open no more. */
  #outdatedBeforeMs = -Infinity;

  constructor(deps: ResealingDeps) {
    this.#deps = deps;
    this.#job = new Job(() => this.#reseal(), deps.onError);
  }

  keysChanged(ring: CursorKeyRing, previous: CursorKeyRing): void {
    const beforeMs = this.#tokenAge.outdatedBefore(ring, previous, performance.now());
    if (beforeMs === undefined) return;
    this.#outdatedBeforeMs = beforeMs;
    this.#job.ask();
  }

  /** Tries again what failed. */
  tick(): void {
    this.#job.tick();
  }

  stop(): void {
    this.#job.stop();
  }

  async #reseal(): Promise<void> {
    const { groups, sessions, noteDeliveries, begunAnew, reload } = this.#deps;
    const beforeMs = this.#outdatedBeforeMs;
    await noteDeliveries();
    const members = sessions.all;
    const lanes = members.flatMap((session) => session.lanes.awaited(beforeMs));
    await groups.beginAnew(lanes);
    begunAnew(lanes);
    const withDeadLetters = members.filter((session) => session.lanes.deadLetters.forgetSent(beforeMs));
    reload(withDeadLetters.map(({ membership }) => membership.group));
  }
}
