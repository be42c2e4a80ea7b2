/** `/watch/v1/groups`: how groups are doing, and what is done to them by hand. */

import type { Hono } from 'hono';

import { deleteGroup, resetGroup, seekGroup } from '#functions/watch/group-admin/acts.ts';
import { listDeadLetters, retryDeadLetter, skipDeadLetter } from '#functions/watch/group-admin/dead-letters.ts';
import type { GroupAdminDeps } from '#functions/watch/group-admin/deps.ts';
import { listGroups, readGroup } from '#functions/watch/group-admin/reads.ts';
import type { HttpEnv } from '#http/app.ts';
import { methods } from '#http/methods.ts';

/** The app authenticates what is below `/watch/`. */
export function routeGroupAdmin(app: Hono<HttpEnv>, deps: GroupAdminDeps): void {
  app.all('/watch/v1/groups', methods({ GET: listGroups(deps) }));
  app.all('/watch/v1/groups/:name', methods({ GET: readGroup(deps), DELETE: deleteGroup(deps) }));
  app.all('/watch/v1/groups/:name/seek', methods({ POST: seekGroup(deps) }));
  app.all('/watch/v1/groups/:name/reset', methods({ POST: resetGroup(deps) }));
  app.all('/watch/v1/groups/:name/deadletters', methods({ GET: listDeadLetters(deps) }));
  app.all('/watch/v1/groups/:name/deadletters/:id/retry', methods({ POST: retryDeadLetter(deps) }));
  app.all('/watch/v1/groups/:name/deadletters/:id/skip', methods({ POST: skipDeadLetter(deps) }));
}
