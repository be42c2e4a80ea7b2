/** The group that a request names, for who may see it. */

import type { Context } from 'hono';

import type { GroupState } from '#core/ports/watch-group-admin.ts';
import { StatusError } from '#core/status-error.ts';
import type { GroupAdminDeps } from '#functions/watch/group-admin/deps.ts';
import { groupIdentity } from '#functions/watch/group-admin/requests.ts';
import { assertMayAct, seesGroup } from '#functions/watch/group-admin/rights.ts';
import type { HttpEnv } from '#http/app.ts';
import { assertParameters } from '#http/query.ts';

const IDENTITY = ['tenants', 'owner'];

/** @throws {StatusError} BadRequest for other parameters than those of its identity and these; NotFound. */
export async function findGroup(
  { groups }: GroupAdminDeps,
  c: Context<HttpEnv>,
  parameters: readonly string[] = [],
): Promise<GroupState> {
  assertParameters(c, [...IDENTITY, ...parameters]);
  const identity = groupIdentity(c);
  // What may not be seen is not looked up: an answer takes as long as one about nothing.
  const group = seesGroup(c.get('caller'), identity) ? await groups.get(identity) : undefined;
  if (group) return group;
  const { name, tenants } = identity;
  const scope = tenants === '*' ? 'all tenants' : `the tenants ${tenants.join(', ')}`;
  throw new StatusError(
    'NotFound',
    `there is no group "${name}" over ${scope}; "tenants" must be those that its members name, and "owner" their subject`,
    { details: { name } },
  );
}

/** The same, for who may act on it. @throws {StatusError} also Forbidden. */
export async function findGroupToChange(deps: GroupAdminDeps, c: Context<HttpEnv>): Promise<GroupState> {
  const group = await findGroup(deps, c);
  assertMayAct(c.get('caller'), group);
  return group;
}
