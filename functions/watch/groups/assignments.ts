/** Which lanes the members of this process hold: asked for when something changed, handed over when others wait for them. */

import type { EventLog } from '#core/ports/event-log.ts';
import type { WatchGroups } from '#core/ports/watch-groups.ts';
import { assignLanes } from '#functions/watch/groups/assign-lanes.ts';
import { GoneTenants, type GoneTenantsDeps } from '#functions/watch/groups/gone-tenants.ts';
import { Job } from '#functions/watch/groups/job.ts';
import type { GroupSessions } from '#functions/watch/groups/sessions.ts';

export interface AssignmentsDeps extends GoneTenantsDeps {
  readonly log: EventLog;
  readonly groups: WatchGroups;
  readonly sessions: GroupSessions;
  readonly onError: (error: unknown) => void;
}

export class Assignments {
  readonly #deps: AssignmentsDeps;
  /** Groups whose lanes are to be looked at. */
  readonly #changed = new Set<bigint>();
  /** By group, when news may have been missed. */
  #versions: ReadonlyMap<bigint, bigint> = new Map();
  readonly #goneTenants: GoneTenants;
  readonly #comparing: Job;
  readonly #updating: Job;

  constructor(deps: AssignmentsDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#goneTenants = new GoneTenants(deps);
    this.#comparing = new Job(() => this.#compare(), deps.onError);
    this.#updating = new Job(() => this.#update(), deps.onError);
    deps.groups.onChange((group) => {
      if (group === undefined) this.#comparing.ask();
      else this.reload([group]);
    }, signal);
  }

  /** Something may have changed in these groups. */
  reload(groups: readonly bigint[]): void {
    for (const group of groups) if (this.#deps.sessions.of(group).length > 0) this.#changed.add(group);
    if (this.#changed.size > 0) this.#updating.ask();
  }

  /** Gives up what others wait for and nothing keeps here any more; tries again what failed. */
  tick(): void {
    this.#updating.ask();
  }

  stop(): void {
    for (const job of [this.#comparing, this.#updating]) job.stop();
  }

  /** The lanes of a thousand tenants take 100 ms to load: only those of groups that have changed. */
  async #compare(): Promise<void> {
    const { groups } = this.#deps.sessions;
    if (groups.length === 0) return;
    const versions = await this.#deps.groups.versions(groups);
    this.reload(groups.filter((group) => versions.get(group) !== this.#versions.get(group)));
    this.#versions = versions;
  }

  /** One after the other: what was loaded before a release was answered would have its lanes go on. */
  async #update(): Promise<void> {
    await this.#release();
    await this.#load();
  }

  async #load(): Promise<void> {
    const groups = [...this.#changed];
    this.#changed.clear();
    try {
      const sessions = groups.flatMap((group) => this.#deps.sessions.of(group));
      if (sessions.length === 0) return;
      const assigned = await this.#deps.groups.lanes(sessions.map(({ membership }) => membership.member));
      const { losses, resting } = await assignLanes(this.#deps.log, sessions, assigned);
      this.#goneTenants.add(losses);
      await this.#goneTenants.tell(resting);
    } catch (error) {
      for (const group of groups) this.#changed.add(group);
      throw error;
    }
  }

  async #release(): Promise<void> {
    const rested = this.#deps.sessions.all.flatMap(({ lanes }) => lanes.takeRested());
    if (rested.length === 0) return;
    try {
      await this.#deps.groups.release(rested);
    } finally {
      // Whatever became of them: those that stayed are taken up again.
      this.reload(rested.map(({ group }) => group));
    }
  }
}
