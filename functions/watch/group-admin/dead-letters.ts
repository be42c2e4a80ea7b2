/** Dead letters of a group: seen, delivered again, given up. */

import { StatusError } from '#core/status-error.ts';
import { deadLetterAnswer } from '#functions/watch/group-admin/answers.ts';
import type { GroupAdminDeps } from '#functions/watch/group-admin/deps.ts';
import { findGroup, findGroupToChange } from '#functions/watch/group-admin/find-group.ts';
import { idAfter, pageRequest, pathId, readAct } from '#functions/watch/group-admin/requests.ts';
import type { MethodHandler } from '#http/methods.ts';

const PAGE = { max: 100, usual: 50 };

export function listDeadLetters(deps: GroupAdminDeps): MethodHandler {
  return async (c) => {
    const { limit, after } = pageRequest(c, PAGE);
    const place = idAfter(after);
    const { group } = await findGroup(deps, c, ['limit', 'after']);
    const { letters, more } = await deps.groups.deadLetters(group, place, limit);
    const last = letters.at(-1);
    return c.json({ items: letters.map(deadLetterAnswer), ...(more && last && { next: String(last.id) }) });
  };
}

export function retryDeadLetter(deps: GroupAdminDeps): MethodHandler {
  return change(deps, 'retryDeadLetter');
}

export function skipDeadLetter(deps: GroupAdminDeps): MethodHandler {
  return change(deps, 'skipDeadLetter');
}

function change(deps: GroupAdminDeps, deed: 'retryDeadLetter' | 'skipDeadLetter'): MethodHandler {
  return async (c) => {
    const { act } = await readAct(c);
    const { group, name } = await findGroupToChange(deps, c);
    const id = pathId(c);
    if (id !== undefined && (await deps.groups[deed](group, id, act))) return c.json({ id: String(id) });
    throw new StatusError('NotFound', `the group "${name}" has no dead letter of this id: it was confirmed or skipped`);
  };
}
