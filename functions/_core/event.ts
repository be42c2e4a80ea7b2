/** One committed change, as it lies in a stream. */

import type { JsonText, ResourceRow } from '#core/resource.ts';

export const EVENT_TYPES = ['ADDED', 'MODIFIED', 'DELETED'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/**
 * An event of a stream. `resource` is the object after the change; for DELETED its last state, with the deletion's own
 * resourceVersion.
 */
export interface StreamEvent {
  readonly stream: bigint;
  /** Dense: the event after n is n + 1. */
  readonly seq: bigint;
  /** Where it lies in its log. Only the log's adapter interprets it. */
  readonly position: bigint;
  /** Set at capture; the same on every delivery. */
  readonly id: string;
  readonly type: EventType;
  /** When the change was captured, inside the writer's transaction. */
  readonly time: Date;
  /** Groups the events of one transaction. Never ordered by. */
  readonly txid: string;
  readonly traceparent: string | null;
  readonly resource: ResourceRow;
  /** The labels before, when they changed. */
  readonly oldLabels: JsonText | null;
}
