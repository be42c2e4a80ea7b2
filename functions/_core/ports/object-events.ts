/** PORT. What controllers told of their objects: why something changed, or did not. Shown as Kubernetes Events. */

import type { Scope } from '#core/identity.ts';

/** The same thing told again is counted. */
export interface ObjectEvent {
  /** A UUID. */
  readonly id: string;
  /** Its own name: the object's, cut where it is too long, and the id. A DNS subdomain. */
  readonly eventName: string;
  /**
   * The namespace that it is shown in: the object's, and for a Tenant the tenant itself while it lives. Null for other
   * objects that are cluster-scoped.
   */
  readonly namespace: string | null;
  /** The object. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly isClusterScoped: boolean;
  /** Who told it: `group/name`. */
  readonly controller: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** How often, 1 at least. */
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly place: EventPlace;
}

/** What events can be selected by. A text that no event has selects nothing. */
export const EVENT_FIELDS = [
  'metadata.name',
  'metadata.namespace',
  'involvedObject.apiVersion',
  'involvedObject.kind',
  'involvedObject.namespace',
  'involvedObject.name',
  'involvedObject.uid',
  'reason',
  'type',
  'source',
  'reportingComponent',
] as const;
export type EventField = (typeof EVENT_FIELDS)[number];

export interface EventCondition {
  readonly field: EventField;
  readonly is: boolean;
  readonly value: string;
}

/** The place of an event in the order of lists. */
export interface EventPlace {
  /** When it was told last, to the microsecond: RFC 3339. */
  readonly at: string;
  /** The object's. */
  readonly name: string;
  readonly id: string;
}

export interface EventListParams {
  /** Those shown in this namespace; absent: all of the scope. */
  readonly namespace?: string;
  /** All must hold. */
  readonly conditions: readonly EventCondition[];
  readonly limit: number;
  readonly after?: EventPlace;
}

export interface EventPage {
  readonly events: readonly ObjectEvent[];
  /** More follow the last one. */
  readonly more: boolean;
}

/**
 * A scope sees the events of the objects that it may read, and of a tenant's present incarnation alone: what was told in
 * an earlier one of the same name does not exist. Errors are `StatusError`: ServiceUnavailable.
 */
export interface ObjectEvents {
  /** One page, in the order of the time when they were told last, then of their objects' names. */
  list(scope: Scope, params: EventListParams): Promise<EventPage>;
}
