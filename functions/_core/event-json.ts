/**
 * Events on the wire: CloudEvents 1.0 in the JSON format, structured mode.
 *
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
 */

import type { EventSubject, EventType, StreamEvent } from '#core/event.ts';

const CLOUD_EVENT_TYPES = {
  ADDED: 'dev.plumbline.added',
  MODIFIED: 'dev.plumbline.modified',
  DELETED: 'dev.plumbline.deleted',
} as const satisfies Record<EventType, string>;

/** What a member of a group is told beside the event. */
export interface DeliveryAttributes {
  /** What is confirmed together: `<stream>.<lane>`. */
  readonly lane: string;
  /** Rises whenever the lane begins anew: what has an older one comes again. */
  readonly fence: bigint;
  /** 1 at the first delivery. */
  readonly attempt: number;
}

/**
 * The CloudEvent of a change, on one line. `type` is what the change means to the watcher (an object that enters its
 * selection is ADDED). Numbers beyond 2^53 are strings.
 */
export function eventJson(event: StreamEvent, type: EventType, delivery?: DeliveryAttributes): string {
  const { tenant, uid, resourceVersion } = event.subject;
  let json = `{"specversion":"1.0","id":"${event.id}","source":${JSON.stringify(cloudEventSource(event.subject))}`;
  json += `,"type":"${cloudEventType(type)}","subject":${JSON.stringify(cloudEventSubject(event.subject))}`;
  json += `,"time":"${event.time.toISOString()}","datacontenttype":"application/json"`;
  json += `,"tenant":${JSON.stringify(tenant)},"uid":"${uid}","resourceversion":"${resourceVersion}"`;
  json += `,"seq":"${event.seq}","txid":${JSON.stringify(event.txid)}`;
  if (event.traceparent !== null) json += `,"traceparent":${JSON.stringify(event.traceparent)}`;
  if (delivery) json += `,"lane":"${delivery.lane}","fence":"${delivery.fence}","attempt":${delivery.attempt}`;
  return json + `,"data":${event.object}}`;
}

/** The same for a dead letter, whose CloudEvent is kept without attributes of a delivery. */
export function deadLetterJson(event: string, id: bigint, { lane, fence, attempt }: DeliveryAttributes): string {
  return `{"deadletter":"${id}","lane":"${lane}","fence":"${fence}","attempt":${attempt},${event.slice(1)}`;
}

export function cloudEventType(type: EventType): string {
  return CLOUD_EVENT_TYPES[type];
}

export function cloudEventSource({ tenant }: EventSubject): string {
  return `/plumbline/${tenant}`;
}

export function cloudEventSubject({ group, kind, name }: EventSubject): string {
  return `${group}/${kind}/${name}`;
}
