/** What a client asks for: `GET /watch/v1/events` with its parameters, checked before anything is begun. */

import type { Context } from 'hono';
import type { HttpEnv } from '#http/app.ts';
import { tenantNotFound } from '#http/errors.ts';
import { assertParameters, textParameter, wordParameter } from '#http/query.ts';
import { EVENT_TYPES, type EventType } from '#core/event.ts';
import { type GrantedTenants, grantedTo, seesTenant, visibleTo, type Scope, type TenantSet } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import { parseLabelSelector } from '#core/label-selector.ts';
import { dnsLabelProblem } from '#core/names.ts';
import { StatusError } from '#core/status-error.ts';
import { compileFilter } from '#functions/watch/filter/compile.ts';
import {
  GROUP_PARAMETERS,
  groupParameters,
  type GroupRequest,
} from '#functions/watch/groups/requests/group-request.ts';
import { createSelection, type KindName, type Selection } from '#functions/watch/selection.ts';

export type WatchStart =
  | { readonly at: 'now' | 'earliest' | 'initial' }
  | { readonly at: 'cursor'; readonly cursor: string };

export interface WatchRequest {
  /** What the caller may see of what it asked for. */
  readonly tenants: TenantSet;
  /** What cursors are bound to: the same, and those of it that are blocked. */
  readonly granted: GrantedTenants;
  /** Named by the caller one by one, so each must exist. */
  readonly tenantsAreNamed: boolean;
  readonly selection: Selection;
  readonly start: WatchStart;
  /** It asks to be a member of a group; then `start` is of no concern. */
  readonly group: GroupRequest | undefined;
  /** The cursor came by the header that browsers send: they give up on any answer but 200. */
  readonly byLastEventId: boolean;
}

const PARAMETERS: readonly string[] = ['tenants', 'kinds', 'labelSelector', 'types', 'filter', 'from', 'initial'];

/** @throws {StatusError} BadRequest naming the parameter; NotFound for a tenant that the caller does not see. */
export function parseWatchRequest(c: Context<HttpEnv>, kinds: KindRegistry): WatchRequest {
  // A misspelt "tenants" must not become a watch of everything, nor a forgotten cursor one that begins now.
  assertParameters(c, [...PARAMETERS, ...GROUP_PARAMETERS]);
  const group = groupParameters(c);
  // A browser sends it to a group too: what its members have processed they say by acks.
  const lastEventId = group ? '' : c.req.header('last-event-id');
  const byLastEventId = lastEventId !== undefined && lastEventId !== '';
  const caller = c.get('caller');
  const visible = visibleTo(caller);
  const named = listParameter(c, 'tenants');
  const chosen = named && visibleTenants(visible, named);
  return {
    tenants: chosen ?? visible.tenants,
    granted: chosen ?? grantedTo(caller).tenants,
    tenantsAreNamed: named !== undefined,
    selection: parseSelection(c, kinds),
    // A browser reconnects to the address it was given: what it has processed since then wins over what it asked first.
    start: byLastEventId ? { at: 'cursor', cursor: lastEventId } : startParameters(c),
    group,
    byLastEventId,
  };
}

function parseSelection(c: Context<HttpEnv>, kinds: KindRegistry): Selection {
  const filter = textParameter(c, 'filter');
  return createSelection({
    kinds: listParameter(c, 'kinds')?.map((name) => kindNamed(kinds, name)),
    labels: parseLabelSelector(textParameter(c, 'labelSelector') ?? ''),
    types: listParameter(c, 'types')?.map(typeNamed),
    filter: filter === undefined ? undefined : compileFilter(filter),
  });
}

function startParameters(c: Context<HttpEnv>): WatchStart {
  const from = textParameter(c, 'from');
  const initial = wordParameter(c, 'initial', ['true', 'false']) === 'true';
  if (initial && from !== undefined) {
    throw new StatusError(
      'BadRequest',
      '"initial=true" and "from" exclude each other: the first begins with the state, the second with a cursor',
    );
  }
  if (initial) return { at: 'initial' };
  if (from === undefined || from === 'now') return { at: 'now' };
  return from === 'earliest' ? { at: 'earliest' } : { at: 'cursor', cursor: from };
}

export function listParameter(c: Context<HttpEnv>, name: string): readonly string[] | undefined {
  const text = textParameter(c, name);
  if (text === undefined) return undefined;
  return [...new Set(text.split(','))];
}

/** @throws {StatusError} BadRequest for what is no name; NotFound for a tenant that is not in the scope. */
export function visibleTenants(visible: Scope, names: readonly string[]): readonly string[] {
  for (const name of names) {
    const problem = dnsLabelProblem(name);
    if (problem !== undefined) {
      throw new StatusError(
        'BadRequest',
        `the query parameter "tenants" has ${JSON.stringify(name.slice(0, 100))}: ${problem}`,
      );
    }
    if (!seesTenant(visible, name)) throw tenantNotFound(name);
  }
  return names.toSorted();
}

function typeNamed(name: string): EventType {
  const type = EVENT_TYPES.find((known) => known === name);
  if (type) return type;
  throw new StatusError(
    'BadRequest',
    `the query parameter "types": ${JSON.stringify(name.slice(0, 100))} is no type of event; known are ${EVENT_TYPES.join(', ')}`,
  );
}

/** `Widget`, or `example.dev/Widget` where two groups have one. */
function kindNamed(kinds: KindRegistry, name: string): KindName {
  const found = kinds.all.filter(({ group, kind }) => name === kind || name === `${group}/${kind}`);
  if (found[0] && found.length === 1) return found[0];
  const known = kinds.all.map(({ group, kind }) => `${group}/${kind}`).join(', ');
  const problem = found.length > 1 ? 'stands for several kinds' : 'is not a kind';
  throw new StatusError(
    'BadRequest',
    `the query parameter "kinds": ${JSON.stringify(name.slice(0, 100))} ${problem}; known are ${known}`,
  );
}
