/** Roles of ours log in and have no power beyond what is granted. */

import type { ExternalRole, RoleChange } from '#core/ports/database-servers.ts';

/**
 * What makes it so again; empty when it is so.
 * @param groups the roles that it may be a member of.
 */
export function roleRepair(role: ExternalRole, groups: readonly string[] = []): RoleChange {
  const { surplus, canLogIn, isLimited, hasSettings, isUsable } = role;
  const leave = role.groups.filter((group) => !groups.includes(group));
  return {
    ...(surplus.length > 0 && { take: surplus }),
    ...(!canLogIn && { letLogIn: true }),
    ...(isLimited && { unlimit: true }),
    ...(hasSettings && { resetSettings: true }),
    ...(leave.length > 0 && { leave }),
    ...(!isUsable && { makeUsable: true }),
  };
}

export function isEmpty(change: object): boolean {
  return Object.keys(change).length === 0;
}
