/** What a client asks for: `GET /watch/v1/events` with its parameters, checked before anything is begun. */

import type { Context } from 'hono';
import type { HttpEnv } from '#http/app.ts';
import { tenantNotFound } from '#http/errors.ts';
import { textParameter, wordParameter } from '#http/query.ts';
import { seesTenant, visibleTo, type Scope, type TenantSet } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import { parseLabelSelector } from '#core/label-selector.ts';
import { dnsLabelProblem } from '#core/names.ts';
import { StatusError } from '#core/status-error.ts';
import { GROUP_PARAMETERS, groupParameters, type GroupRequest } from '#functions/watch/groups/group-request.ts';
import { createSelection, type KindName, type Selection } from '#functions/watch/selection.ts';

export type WatchStart =
  | { readonly at: 'now' | 'earliest' | 'initial' }
  | { readonly at: 'cursor'; readonly cursor: string };

export interface WatchRequest {
  /** What the caller may see of what it asked for. */
  readonly tenants: TenantSet;
  /** Named by the caller one by one, so each must exist. */
  readonly tenantsAreNamed: boolean;
  readonly selection: Selection;
  readonly start: WatchStart;
  /** It asks to be a member of a group; then `start` is of no concern. */
  readonly group: GroupRequest | undefined;
  /** The cursor came by the header that browsers send: they give up on any answer but 200. */
  readonly byLastEventId: boolean;
}

const PARAMETERS: readonly string[] = ['tenants', 'kinds', 'labelSelector', 'from', 'initial'];

/** @throws {StatusError} BadRequest naming the parameter; NotFound for a tenant that the caller does not see. */
export function parseWatchRequest(c: Context<HttpEnv>, kinds: KindRegistry): WatchRequest {
  assertParameters(c);
  const group = groupParameters(c);
  // A browser sends it to a group too: what its members have processed they say by acks.
  const lastEventId = group ? '' : c.req.header('last-event-id');
  const byLastEventId = lastEventId !== undefined && lastEventId !== '';
  const visible = visibleTo(c.get('caller'));
  const named = listParameter(c, 'tenants');
  return {
    tenants: named ? visibleTenants(visible, named) : visible.tenants,
    tenantsAreNamed: named !== undefined,
    selection: createSelection(
      listParameter(c, 'kinds')?.map((name) => kindNamed(kinds, name)),
      parseLabelSelector(textParameter(c, 'labelSelector') ?? ''),
    ),
    // A browser reconnects to the address it was given: what it has processed since then wins over what it asked first.
    start: byLastEventId ? { at: 'cursor', cursor: lastEventId } : startParameters(c),
    group,
    byLastEventId,
  };
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

/** A misspelt "tenants" must not become a watch of everything, nor a forgotten cursor one that begins now. */
function assertParameters(c: Context<HttpEnv>): void {
  const known = [...PARAMETERS, ...GROUP_PARAMETERS];
  const empty = known.find((name) => c.req.queries(name)?.includes(''));
  if (empty !== undefined) throw new StatusError('BadRequest', `the query parameter "${empty}" is empty`);
  const unknown = Object.keys(c.req.query()).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new StatusError(
      'BadRequest',
      `the query parameter ${JSON.stringify(unknown.slice(0, 100))} is not known; known are ${known.join(', ')}`,
    );
  }
}

function listParameter(c: Context<HttpEnv>, name: string): readonly string[] | undefined {
  const text = textParameter(c, name);
  if (text === undefined) return undefined;
  return [...new Set(text.split(','))];
}

function visibleTenants(visible: Scope, names: readonly string[]): readonly string[] {
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
