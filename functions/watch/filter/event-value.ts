/** An event as expressions see it: what its watcher is sent, with a few parts of it by their own names. */

import type { EventType, StreamEvent } from '#core/event.ts';
import { cloudEventSource, cloudEventSubject, cloudEventType } from '#core/event-json.ts';
import { isJsonArray, isJsonObject, parseJson, type JsonValue } from '#core/json.ts';

/** Each attribute with its type. All are strings, as on the wire; `data` is the object, of no type that is known before. */
export const EVENT_FIELDS = {
  specversion: 'string',
  id: 'string',
  source: 'string',
  type: 'string',
  subject: 'string',
  time: 'string',
  datacontenttype: 'string',
  tenant: 'string',
  uid: 'string',
  resourceversion: 'string',
  seq: 'string',
  txid: 'string',
  traceparent: 'string',
  data: 'dyn',
  group: 'string',
  kind: 'string',
  name: 'string',
} as const;

/** A value of JSON without a prototype: no key of an object can be taken for something of the host's. */
export type CelValue = null | boolean | number | string | readonly CelValue[] | ReadonlyMap<string, CelValue>;

/** The fields are read one by one: an expression that does not ask for `data` costs no parsing. */
export class EventValue implements Record<keyof typeof EVENT_FIELDS, CelValue | undefined> {
  readonly specversion = '1.0';
  readonly datacontenttype = 'application/json';
  readonly #event: StreamEvent;
  readonly type: string;

  constructor(event: StreamEvent, type: EventType) {
    this.#event = event;
    this.type = cloudEventType(type);
  }

  get id(): string {
    return this.#event.id;
  }

  get source(): string {
    return cloudEventSource(this.#event.subject);
  }

  get subject(): string {
    return cloudEventSubject(this.#event.subject);
  }

  get time(): string {
    return this.#event.time.toISOString();
  }

  get tenant(): string {
    return this.#event.subject.tenant;
  }

  get uid(): string {
    return this.#event.subject.uid;
  }

  get resourceversion(): string {
    return this.#event.subject.resourceVersion;
  }

  get seq(): string {
    return String(this.#event.seq);
  }

  get txid(): string {
    return this.#event.txid;
  }

  get traceparent(): string | undefined {
    return this.#event.traceparent ?? undefined;
  }

  get group(): string {
    return this.#event.subject.group;
  }

  get kind(): string {
    return this.#event.subject.kind;
  }

  get name(): string {
    return this.#event.subject.name;
  }

  get data(): CelValue {
    return dataOf(this.#event);
  }
}

/** Text of the objects that are kept parsed; in memory they take about ten times as much. */
const MAX_PARSED_BYTES = 4 * 1024 * 1024;
const parsed = new Map<StreamEvent, CelValue>();
let parsedBytes = 0;

/** Parsed once for all filters that look at it while it is new. */
function dataOf(event: StreamEvent): CelValue {
  const known = parsed.get(event);
  if (known !== undefined) return known;
  const value = toCelValue(parseJson(event.object));
  parsed.set(event, value);
  parsedBytes += event.size;
  for (const oldest of parsed.keys()) {
    if (parsedBytes <= MAX_PARSED_BYTES || oldest === event) break;
    parsed.delete(oldest);
    parsedBytes -= oldest.size;
  }
  return value;
}

function toCelValue(value: JsonValue): CelValue {
  if (isJsonArray(value)) return value.map(toCelValue);
  if (isJsonObject(value)) return new Map(Object.entries(value).map(([key, each]) => [key, toCelValue(each)]));
  return value;
}
