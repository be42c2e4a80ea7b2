/** What is done to a whole group by hand. Each answers the group as it is then; the deletion, as it was. */

import type { Context } from 'hono';

import type { JsonValue } from '#core/json.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { GroupState } from '#core/ports/watch-group-admin.ts';
import { StatusError } from '#core/status-error.ts';
import { groupAnswer } from '#functions/watch/group-admin/answers.ts';
import type { GroupAdminDeps } from '#functions/watch/group-admin/deps.ts';
import { findGroupToChange } from '#functions/watch/group-admin/find-group.ts';
import { readAct } from '#functions/watch/group-admin/requests.ts';
import { noteOldest } from '#functions/watch/groups/note-oldest.ts';
import { resumeVector } from '#functions/watch/start/start-vector.ts';
import type { HttpEnv } from '#http/app.ts';
import type { MethodHandler } from '#http/methods.ts';

export function seekGroup(deps: GroupAdminDeps): MethodHandler {
  return async (c) => {
    const { act, body } = await readAct(c, ['to']);
    const group = await findGroupToChange(deps, c);
    const to = await target(deps, group, body['to']);
    if (to === 'earliest') await noteOldestOf(deps, group);
    await deps.groups.seek(group.group, to, act);
    return answerNow(deps, c, group);
  };
}

export function resetGroup(deps: GroupAdminDeps): MethodHandler {
  return async (c) => {
    const { act } = await readAct(c);
    const group = await findGroupToChange(deps, c);
    await noteOldestOf(deps, group);
    await deps.groups.reset(group.group, act);
    return answerNow(deps, c, group);
  };
}

export function deleteGroup(deps: GroupAdminDeps): MethodHandler {
  return async (c) => {
    const { act } = await readAct(c);
    const group = await findGroupToChange(deps, c);
    // Somebody else may have deleted it at this moment.
    if (!(await deps.groups.delete(group.group, act))) throw gone(group);
    return c.json(groupAnswer(group));
  };
}

async function noteOldestOf({ log, streams }: GroupAdminDeps, { tenants }: GroupState): Promise<void> {
  await noteOldest(log, await streams.list({ tenants }));
}

/** @throws {StatusError} BadRequest; Expired, StreamRecreated and CursorKeyRetired as for a watch from that cursor. */
async function target(
  { log, streams, cursors }: GroupAdminDeps,
  { audience, tenants }: GroupState,
  to: JsonValue | undefined,
): Promise<'earliest' | 'now' | ReadonlyMap<bigint, LogPoint>> {
  if (to === 'earliest' || to === 'now') return to;
  if (typeof to !== 'string' || to === '') {
    throw new StatusError(
      'BadRequest',
      'the body needs "to": "earliest", "now", or a cursor of a list or watch of the same tenants',
    );
  }
  const cursor = cursors.open(to, audience, tenants);
  return resumeVector(log, {
    tenants,
    cursor,
    streams: await streams.list({ tenants }, [...cursor.keys()]),
    seal: (vector) => cursors.seal(vector, audience, tenants),
  });
}

async function answerNow({ groups }: GroupAdminDeps, c: Context<HttpEnv>, group: GroupState): Promise<Response> {
  const now = await groups.get(group);
  if (!now) throw gone(group);
  return c.json(groupAnswer(now));
}

function gone({ name }: GroupState): StatusError {
  return new StatusError('NotFound', `the group "${name}" was deleted`);
}
