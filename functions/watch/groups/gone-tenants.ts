/** Tells members of tenants that are gone, and ends those that named all of theirs one by one: nothing comes any more. */

import type { StreamDirectory } from '#core/ports/streams.ts';
import type { WatchGroups } from '#core/ports/watch-groups.ts';
import type { Loss } from '#functions/watch/groups/assign-lanes.ts';
import type { GroupSession } from '#functions/watch/groups/member/session.ts';

export interface GoneTenantsDeps {
  readonly streams: StreamDirectory;
  readonly groups: Pick<WatchGroups, 'withLanes'>;
}

export class GoneTenants {
  readonly #deps: GoneTenantsDeps;
  /** Whether the tenant is gone, or the lanes went to others, is not known yet. */
  #losses: readonly Loss[] = [];

  constructor(deps: GoneTenantsDeps) {
    this.#deps = deps;
  }

  /** Members do not hold lanes of these streams any more. */
  add(losses: readonly Loss[]): void {
    this.#losses = [...this.#losses, ...losses];
  }

  /**
   * @param resting members that hold no lane.
   * @throws what the directory throws; nothing is forgotten: it is all told with the next call.
   */
  async tell(resting: readonly GroupSession[]): Promise<void> {
    this.#losses = this.#losses.filter(({ session }) => !session.isClosed);
    const ending = resting.filter(({ namedTenants }) => namedTenants !== undefined);
    if (this.#losses.length === 0 && ending.length === 0) return;
    const asked = this.#losses;
    const tenants = new Set([
      ...asked.map(({ tenant }) => tenant),
      ...ending.flatMap(({ namedTenants = [] }) => namedTenants),
    ]);
    const open = await this.#deps.streams.list({ tenants: [...tenants] });
    const streams = new Set(open.map(({ id }) => id));
    for (const { session, stream, tenant } of asked) if (!streams.has(stream)) session.tellGone(tenant);
    this.#losses = this.#losses.filter((loss) => !asked.includes(loss));
    const names = new Set(open.map(({ tenant }) => tenant));
    await this.#end(ending.filter(({ namedTenants = [] }) => !namedTenants.some((tenant) => names.has(tenant))));
  }

  /** While other members have something to do with what is left, theirs may come to these. */
  async #end(sessions: readonly GroupSession[]): Promise<void> {
    if (sessions.length === 0) return;
    const busy = await this.#deps.groups.withLanes(sessions.map(({ membership }) => membership.group));
    for (const session of sessions) if (!busy.has(session.membership.group)) session.endWithTenants();
  }
}
