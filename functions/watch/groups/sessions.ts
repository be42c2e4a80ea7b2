/** The members of groups in this process, by member and by group. */

import type { GroupSession } from '#functions/watch/groups/member/session.ts';

export class GroupSessions {
  readonly #byMember = new Map<bigint, GroupSession>();
  readonly #byGroup = new Map<bigint, Set<GroupSession>>();

  get all(): readonly GroupSession[] {
    return [...this.#byMember.values()];
  }

  get groups(): readonly bigint[] {
    return [...this.#byGroup.keys()];
  }

  find(member: bigint): GroupSession | undefined {
    return this.#byMember.get(member);
  }

  of(group: bigint): readonly GroupSession[] {
    return [...(this.#byGroup.get(group) ?? [])];
  }

  add(session: GroupSession): void {
    const { member, group } = session.membership;
    this.#byMember.set(member, session);
    this.#byGroup.set(group, (this.#byGroup.get(group) ?? new Set()).add(session));
  }

  remove(session: GroupSession): void {
    const { member, group } = session.membership;
    this.#byMember.delete(member);
    const others = this.#byGroup.get(group);
    others?.delete(session);
    if (others?.size === 0) this.#byGroup.delete(group);
  }
}
