/** Roles of ours log in and have no power beyond what is granted. */

import type { ExternalRole, RoleChange } from '#core/ports/database-servers.ts';

/** What makes it so again; empty when it is so. */
export function roleRepair({ surplus, canLogIn, isUsable }: ExternalRole): RoleChange {
  return {
    ...(surplus.length > 0 && { take: surplus }),
    ...(!canLogIn && { letLogIn: true }),
    ...(!isUsable && { makeUsable: true }),
  };
}

export function isEmpty(change: object): boolean {
  return Object.keys(change).length === 0;
}
