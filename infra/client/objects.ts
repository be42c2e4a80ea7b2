/** What comes over the wire, typed: objects, the CloudEvents that carry them, and what a watch gives. */

import type { EventType } from '#core/event.ts';
import type { OwnerReference, ResourceMetadata } from '#core/resource.ts';

export type { EventType, OwnerReference };

/** Of an object that the server gave. */
export interface ObjectMetadata extends ResourceMetadata {
  readonly uid: string;
  /** Decimal, of any length: see `compareVersions`. */
  readonly resourceVersion: string;
  readonly generation: number;
  readonly creationTimestamp: string;
}

/** An object. `Spec` and `Status` are taken on trust: the server's schema made them. */
export interface PlumblineObject<Spec = Record<string, unknown>, Status = Record<string, unknown>> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMetadata;
  readonly spec: Spec;
  /** Absent while nobody has reported any. */
  readonly status?: Status;
}

/** CloudEvents 1.0, structured. @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md */
export interface CloudEvent<Data> {
  readonly specversion: '1.0';
  /** Of the change: the same on every delivery. */
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** `group/Kind/name`. */
  readonly subject: string;
  /** When the change was made, RFC 3339. */
  readonly time: string;
  readonly datacontenttype: 'application/json';
  readonly tenant: string;
  readonly uid: string;
  /** Of the change: a deletion has one of its own. Decimal. */
  readonly resourceversion: string;
  /** The number of the event among those of its tenant. Decimal. */
  readonly seq: string;
  readonly traceparent?: string;
  readonly data: Data;
}

/** One committed change of an object. */
export interface Change<Spec = Record<string, unknown>, Status = Record<string, unknown>> {
  /** As this watch sees it: an object that enters its selection is ADDED, one that leaves it DELETED. */
  readonly type: EventType;
  /** After the change; of a deleted one, its last state. */
  readonly object: PlumblineObject<Spec, Status>;
  readonly event: CloudEvent<PlumblineObject<Spec, Status>>;
  /**
   * A watch from here goes on behind this change. Undefined where only bookmarks have cursors: in the initial state, and
   * in watches over many tenants.
   */
  readonly cursor: string | undefined;
}

/** No change: a word on the stream itself. */
export interface Bookmark {
  readonly type: 'BOOKMARK';
  /**
   * Progress: nothing happened, and the cursor has moved. InitialEventsBegin: the initial state begins, or begins anew;
   * what came of it before is void. InitialEventsEnd: it is complete. TenantGone: the tenant was deleted, and this was all.
   */
  readonly reason: 'Progress' | 'InitialEventsBegin' | 'InitialEventsEnd' | 'TenantGone';
  /** With TenantGone. */
  readonly tenant?: string;
  readonly cursor: string | undefined;
}

/** Which of two versions of one object is later: negative, 0 or positive. Decimal texts without leading zeros. */
export function compareVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
