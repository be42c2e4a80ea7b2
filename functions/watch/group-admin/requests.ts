/** What requests about groups say: which group, which page, why. Each part is checked before anything is looked up. */

import type { Context } from 'hono';

import { type GrantedTenants, grantedTo, visibleTo } from '#core/identity.ts';
import type { JsonObject } from '#core/json.ts';
import type { AdminAct } from '#core/ports/watch-group-admin.ts';
import type { GroupIdentity } from '#core/ports/watch-groups.ts';
import { StatusError } from '#core/status-error.ts';
import { assertGroupName } from '#functions/watch/groups/requests/group-request.ts';
import { listParameter, visibleTenants } from '#functions/watch/watch-request.ts';
import type { HttpEnv } from '#http/app.ts';
import { assertFields, readJsonBody } from '#http/json-body.ts';
import { integerParameter, textParameter } from '#http/query.ts';
import { isPlainText, reasonOf } from '#http/reason.ts';

const MAX_OWNER_CHARACTERS = 253;
const ID = /^(?:0|[1-9][0-9]{0,17})$/;

/** Names a group as `GET /watch/v1/events` does; an admin may name another `owner`. @throws {StatusError} BadRequest; NotFound. */
export function groupIdentity(c: Context<HttpEnv>): GroupIdentity {
  const { audience, subject } = c.get('caller');
  const name = c.req.param('name') ?? '';
  assertGroupName(name, "the group's name");
  return { audience, tenants: tenantsParameter(c), owner: ownerParameter(c) ?? subject, name };
}

/** Those that the caller is granted, or names. @throws {StatusError} BadRequest; NotFound. */
export function tenantsParameter(c: Context<HttpEnv>): GrantedTenants {
  const caller = c.get('caller');
  const named = listParameter(c, 'tenants');
  return named ? visibleTenants(visibleTo(caller), named) : grantedTo(caller).tenants;
}

export function ownerParameter(c: Context<HttpEnv>): string | undefined {
  const owner = textParameter(c, 'owner');
  if (owner === undefined || isPlainText(owner, MAX_OWNER_CHARACTERS)) return owner;
  throw badRequest(`the query parameter "owner" is no subject of a token: 1 to ${MAX_OWNER_CHARACTERS} characters`);
}

export interface PageRequest {
  readonly limit: number;
  readonly after: string | undefined;
}

export function pageRequest(c: Context<HttpEnv>, { max, usual }: { max: number; usual: number }): PageRequest {
  return { limit: integerParameter(c, 'limit', { min: 1, max }) ?? usual, after: textParameter(c, 'after') };
}

/** What a page told as `next`. @throws {StatusError} BadRequest. */
export function idAfter(after: string | undefined): bigint {
  if (after === undefined) return 0n;
  if (ID.test(after)) return BigInt(after);
  throw notAPlace(after, 'next');
}

export function notAPlace(after: string, field: string): StatusError {
  const shown = JSON.stringify(after.slice(0, 100));
  return badRequest(`the query parameter "after" is ${shown}; send "${field}" of the page before as it came`);
}

/** An id in a path; undefined for what is none. */
export function pathId(c: Context<HttpEnv>): bigint | undefined {
  const text = c.req.param('id') ?? '';
  return ID.test(text) ? BigInt(text) : undefined;
}

/** The body of what is done by hand: a reason, and these other fields. @throws {StatusError} BadRequest naming the field. */
export async function readAct(
  c: Context<HttpEnv>,
  fields: readonly string[] = [],
): Promise<{ readonly act: AdminAct; readonly body: JsonObject }> {
  const body = await readJsonBody(c, 'application/json');
  assertFields(body, [...fields, 'reason'], 'the body');
  return { act: { by: c.get('caller').subject, reason: reasonOf(body) }, body };
}

function badRequest(message: string): StatusError {
  return new StatusError('BadRequest', message);
}
