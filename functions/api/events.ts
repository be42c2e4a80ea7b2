/**
 * Kubernetes Events: what controllers told of their objects. They are read here alone, and kept for a while.
 *
 * @see https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
 */

import type { Context } from 'hono';

import type { ApiDeps } from '#functions/api/deps.ts';
import { eventJson } from '#functions/api/event-object.ts';
import { pageQuery, refuseWatch } from '#functions/api/parameters.ts';
import { assertVisible } from '#functions/api/target.ts';
import { tenantExists } from '#functions/api/tenants.ts';
import type { HttpEnv } from '#http/app.ts';
import { may, MissingRight, type Verb } from '#http/authorize.ts';
import { tenantNotFound } from '#http/errors.ts';
import type { MethodHandler } from '#http/methods.ts';
import { textParameter } from '#http/query.ts';
import { continueBinding, type ContinueState } from '#core/continue-token.ts';
import { parseEventSelector } from '#core/event-selector.ts';
import { visibleTo, type Caller, type Scope } from '#core/identity.ts';
import { matchesSelector, parseLabelSelector } from '#core/label-selector.ts';
import type { EventPage, EventPlace, ObjectEvent } from '#core/ports/object-events.ts';
import { StatusError } from '#core/status-error.ts';

const JSON_HEADERS = { 'Content-Type': 'application/json' };

/** GET of all events that the caller may see, or of those of one namespace: an EventList, in pages. */
export function listEvents({ events, store, continueTokens }: ApiDeps): MethodHandler {
  return async (c) => {
    const { caller, visible, namespace } = target(c);
    assertMay(caller, 'list', namespace);
    refuseWatch(c, 'events of controllers cannot be watched; list them again');
    const { limit, continueToken } = pageQuery(c);
    const labelSelector = textParameter(c, 'labelSelector') ?? '';
    const fieldSelector = textParameter(c, 'fieldSelector') ?? '';
    const conditions = parseEventSelector(fieldSelector);
    const binding = continueBinding({
      audience: caller.audience,
      tenants: visible.tenants,
      group: '',
      kind: 'Event',
      ...(namespace !== undefined && { tenant: namespace }),
      labelSelector,
      fieldSelector,
    });
    const before = continueToken === undefined ? undefined : placeOf(continueTokens.open(continueToken, binding).after);
    const isEmpty = !matchesSelector(parseLabelSelector(labelSelector), {});
    const page: EventPage = isEmpty
      ? { events: [], more: false }
      : await events.list(visible, {
          ...(namespace !== undefined && { namespace }),
          conditions,
          limit,
          ...(before && { after: before }),
        });
    await assertExists(namespace, page.events);
    const last = page.more ? page.events.at(-1)?.place : undefined;
    const head = JSON.stringify({
      apiVersion: 'v1',
      kind: 'EventList',
      metadata: {
        continue: last && continueTokens.seal({ after: afterPlace(last) }, binding),
      },
    });
    return c.body(`${head.slice(0, -1)},"items":[${page.events.map(eventJson).join(',')}]}\n`, 200, JSON_HEADERS);
  };

  /** A tenant that does not exist and one that the caller may not see must answer the same. */
  async function assertExists(namespace: string | undefined, found: readonly ObjectEvent[]): Promise<void> {
    if (namespace === undefined || found.length > 0 || (await tenantExists(store, namespace))) return;
    throw tenantNotFound(namespace);
  }
}

/** GET of one, by the name that lists give. */
export function readEvent({ events }: ApiDeps): MethodHandler {
  return async (c) => {
    const { caller, visible, namespace } = target(c);
    assertMay(caller, 'get', namespace);
    const name = c.req.param('name') ?? '';
    const { events: found } = await events.list(visible, {
      ...(namespace !== undefined && { namespace }),
      conditions: [{ field: 'metadata.name', is: true, value: name }],
      limit: 1,
    });
    if (!found[0]) {
      const shown = name.slice(0, 253);
      const details = { name: shown, kind: 'events' };
      throw new StatusError('NotFound', `events ${JSON.stringify(shown)} not found`, { details });
    }
    return c.body(`${eventJson(found[0])}\n`, 200, JSON_HEADERS);
  };
}

interface EventsTarget {
  readonly caller: Caller;
  readonly visible: Scope;
  /** Undefined: all. */
  readonly namespace: string | undefined;
}

/** @throws {StatusError} NotFound for a tenant that the caller does not see. */
function target(c: Context<HttpEnv>): EventsTarget {
  const caller = c.get('caller');
  const visible = visibleTo(caller);
  const namespace = c.req.param('tenant');
  if (namespace !== undefined) assertVisible(namespace, visible);
  return { caller, visible, namespace };
}

/** As for the objects that events are about. @throws {StatusError} Forbidden */
function assertMay(caller: Caller, verb: Verb, tenant: string | undefined): void {
  if (may(caller, verb, { scope: 'Namespaced', tenant })) return;
  throw new MissingRight(`${JSON.stringify(caller.subject)} has no role that may ${verb} events`, {
    details: { kind: 'events' },
  });
}

function afterPlace({ at, name, id }: EventPlace): ContinueState['after'] {
  return { tenant: '', name, at: `${at}/${id}` };
}

function placeOf({ name, at = '' }: ContinueState['after']): EventPlace {
  const [time = '', id = ''] = at.split('/');
  return { at: time, name, id };
}
