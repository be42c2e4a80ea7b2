/**
 * Events as Kafka records: CloudEvents 1.0, Kafka protocol binding, binary mode. Any CloudEvents consumer can read the
 * topics. The key is the object's uid, the value is the object, and the attributes are headers, of the same values as in
 * the JSON format (functions/_core/event-json.ts).
 *
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
 */

import type { KafkaMessage } from 'kafkajs';
import type { EventSubject, NumberedEvent, StreamEvent } from '#core/event.ts';

const TYPES = {
  ADDED: 'dev.plumbline.added',
  MODIFIED: 'dev.plumbline.modified',
  DELETED: 'dev.plumbline.deleted',
  SKIPPED: 'dev.plumbline.skipped',
} as const satisfies Record<NumberedEvent['type'], string>;

const TYPES_BY_NAME: ReadonlyMap<string, NumberedEvent['type']> = new Map(
  Object.entries(TYPES).map(([type, name]) => [name, type as NumberedEvent['type']]),
);

/** A record as kafkajs sends it. */
export interface EventRecord {
  readonly key: string;
  /** Null for SKIPPED: nobody is to read it. */
  readonly value: string | null;
  readonly headers: Record<string, string>;
}

export function toRecord(event: NumberedEvent): EventRecord {
  const { tenant, group, kind, name, uid, resourceVersion } = event.subject;
  const skipped = event.type === 'SKIPPED';
  const headers: Record<string, string> = skipped ? {} : { 'content-type': 'application/json' };
  headers['ce_specversion'] = '1.0';
  headers['ce_id'] = event.id;
  headers['ce_source'] = `/plumbline/${tenant}`;
  headers['ce_type'] = TYPES[event.type];
  headers['ce_subject'] = `${group}/${kind}/${name}`;
  headers['ce_time'] = event.time.toISOString();
  headers['ce_tenant'] = tenant;
  headers['ce_uid'] = uid;
  headers['ce_resourceversion'] = resourceVersion;
  headers['ce_seq'] = String(event.seq);
  headers['ce_txid'] = event.txid;
  headers['ce_stream'] = String(event.stream);
  if (event.traceparent !== null) headers['ce_traceparent'] = event.traceparent;
  if (event.oldLabels !== null) headers['ce_oldlabels'] = event.oldLabels;
  return { key: uid, value: skipped ? null : event.object, headers };
}

/** Which event a record is. */
export interface EventNumber {
  readonly stream: bigint;
  readonly seq: bigint;
}

/** Cheap: to look before decoding. Undefined when the record is a stranger's. */
export function numberOf({ headers }: Pick<KafkaMessage, 'headers'>): EventNumber | undefined {
  const stream = text(headers, 'ce_stream');
  const seq = text(headers, 'ce_seq');
  if (!isNumber(stream) || !isNumber(seq)) return undefined;
  return { stream: BigInt(stream), seq: BigInt(seq) };
}

/**
 * The event of a record, with no part of the fetched bytes held. `labels` are taken out of the object when somebody asks.
 * Undefined when the record is a stranger's.
 */
export function toEvent(record: Pick<KafkaMessage, 'headers' | 'value' | 'offset'>): StreamEvent | undefined {
  const { headers, value } = record;
  const number = numberOf(record);
  const type = TYPES_BY_NAME.get(text(headers, 'ce_type') ?? '');
  const subject = subjectOf(headers);
  const id = text(headers, 'ce_id');
  const time = new Date(text(headers, 'ce_time') ?? Number.NaN);
  if (!number || !type || !subject || !isPlain(id) || Number.isNaN(time.getTime())) return undefined;
  if ((value === null) !== (type === 'SKIPPED')) return undefined;
  const object = value === null ? 'null' : value.toString();
  if (value !== null && !isOneLine(object)) return undefined;
  let labels: string | undefined;
  return {
    ...number,
    position: BigInt(record.offset),
    id,
    type,
    time,
    txid: text(headers, 'ce_txid') ?? '',
    traceparent: text(headers, 'ce_traceparent') ?? null,
    subject,
    object,
    size: value?.length ?? 0,
    get labels() {
      labels ??= labelsOf(object);
      return labels;
    },
    oldLabels: text(headers, 'ce_oldlabels') ?? null,
  };
}

function subjectOf(headers: KafkaMessage['headers']): EventSubject | undefined {
  const parts = /^([^/]*)\/([^/]*)\/([^]*)$/.exec(text(headers, 'ce_subject') ?? '');
  const tenant = text(headers, 'ce_tenant');
  const uid = text(headers, 'ce_uid');
  const resourceVersion = text(headers, 'ce_resourceversion');
  if (!parts || tenant === undefined || !isPlain(uid) || !isNumber(resourceVersion)) return undefined;
  const [, group = '', kind = '', name = ''] = parts;
  return { tenant, group, kind, name, uid, resourceVersion };
}

function labelsOf(object: string): string {
  const parsed = JSON.parse(object) as { readonly metadata?: { readonly labels?: object } } | null;
  return JSON.stringify(parsed?.metadata?.labels ?? {});
}

/** What is put into a frame as it is: an object on one line cannot end the frame. */
function isOneLine(object: string): boolean {
  return object.startsWith('{') && object.endsWith('}') && !/[\r\n]/.test(object);
}

function isPlain(value: string | undefined): value is string {
  return value !== undefined && /^[\w.-]{1,64}$/.test(value);
}

function isNumber(value: string | undefined): value is string {
  return value !== undefined && /^[0-9]{1,19}$/.test(value);
}

/** A header that is there once. */
function text(headers: KafkaMessage['headers'], name: string): string | undefined {
  const value = headers?.[name];
  return value === undefined || Array.isArray(value) ? undefined : value.toString();
}
