/** One committed change, as it lies in a stream. */

import type { JsonText } from '#core/resource.ts';

export const EVENT_TYPES = ['ADDED', 'MODIFIED', 'DELETED'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Which object an event is about, and which version of it. */
export interface EventSubject {
  readonly tenant: string;
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** Of the object after the change; a deletion has one of its own. Decimal. */
  readonly resourceVersion: string;
}

/** An event with its number, before it has a place in a log. */
export interface NumberedEvent {
  readonly stream: bigint;
  /** Dense: the event after n is n + 1. */
  readonly seq: bigint;
  /** Set at capture; the same on every delivery. */
  readonly id: string;
  /** SKIPPED: an operator left the event out after its number was given. It keeps the number, and nobody is sent it. */
  readonly type: EventType | 'SKIPPED';
  /** When the change was captured, inside the writer's transaction. */
  readonly time: Date;
  /** Groups the events of one transaction. Never ordered by. */
  readonly txid: string;
  readonly traceparent: string | null;
  readonly subject: EventSubject;
  /** The object after the change, for DELETED its last state, as the API shows it: on one line. */
  readonly object: JsonText;
  /** About the length of `object`, known without making it. */
  readonly size: number;
  /** The labels of `object`. */
  readonly labels: JsonText;
  /** The labels before, when they changed. */
  readonly oldLabels: JsonText | null;
}

/** An event of a stream, as it lies in its log. */
export interface StreamEvent extends NumberedEvent {
  /** Where it lies in its log. Only the log's adapter interprets it. */
  readonly position: bigint;
}
