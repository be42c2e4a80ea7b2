/** The members of this process are kept alive, by one call for all of them; those whose membership is over are ended. */

import type { WatchGroups } from '#core/ports/watch-groups.ts';
import { Job } from '#functions/watch/groups/job.ts';
import type { GroupSession } from '#functions/watch/groups/member/session.ts';
import type { GroupSessions } from '#functions/watch/groups/sessions.ts';
import { groupDeleted, leaseLost } from '#functions/watch/watch-errors.ts';

export interface RenewalsDeps {
  readonly groups: Pick<WatchGroups, 'renew' | 'deletions'>;
  readonly sessions: GroupSessions;
  readonly onError: (error: unknown) => void;
}

/** A renewal that fails is made again and again until it is too late: the database may be back by then. */
export const LEASE_MS = 6_000;
const RENEW_MS = 2_000;

export class Renewals {
  readonly #deps: RenewalsDeps;
  readonly #job: Job;
  #askedAtMs = 0;

  constructor(deps: RenewalsDeps) {
    this.#deps = deps;
    this.#job = new Job(() => this.#renew(), deps.onError);
  }

  /** Renews them when it is time, and when it failed. */
  tick(nowMs: number): void {
    if (nowMs - this.#askedAtMs < RENEW_MS) {
      this.#job.tick();
      return;
    }
    this.#askedAtMs = nowMs;
    this.#job.ask();
  }

  stop(): void {
    this.#job.stop();
  }

  async #renew(): Promise<void> {
    const { groups, sessions } = this.#deps;
    const members = sessions.all.map(({ membership }) => membership.member);
    if (members.length === 0) return;
    const askedAtMs = performance.now();
    const alive = new Set(await groups.renew(members, LEASE_MS));
    const ended: GroupSession[] = [];
    for (const member of members) {
      const session = sessions.find(member);
      if (alive.has(member)) session?.renewed(askedAtMs + LEASE_MS);
      else if (session) ended.push(session);
    }
    if (ended.length > 0) await this.#end(ended);
  }

  /** Their memberships are over, in the database. */
  async #end(ended: readonly GroupSession[]): Promise<void> {
    const deletions = await this.#deps.groups.deletions(ended.map(({ membership }) => membership.group));
    for (const session of ended) {
      const deletion = deletions.find(({ group }) => group === session.membership.group);
      if (deletion) session.end(groupDeleted(deletion));
      else session.end(leaseLost(), 'lease');
    }
  }
}
