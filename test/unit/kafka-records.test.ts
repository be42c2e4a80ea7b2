import { createRequire } from 'node:module';

import fc from 'fast-check';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { produceRequest } from '#adapters/kafka/wire/produce-request.ts';
import { numberOf, toEvent, toRecord } from '#adapters/kafka/records.ts';
import { EVENT_TYPES, type NumberedEvent } from '#core/event.ts';

const require = createRequire(import.meta.url);
const Decoder = require('kafkajs/src/protocol/decoder');
const decodeBatch = require('kafkajs/src/protocol/recordBatch/v0/decoder');

const BLUE: NumberedEvent = {
  stream: 7n,
  seq: 9007199254740993n,
  id: '0199c5a0-0000-7000-8000-00000000000e',
  type: 'MODIFIED',
  time: new Date('2026-11-29T10:00:00.120Z'),
  txid: '777',
  traceparent: null,
  subject: {
    tenant: 'acme',
    group: 'example.dev',
    kind: 'Widget',
    name: 'blue',
    uid: '0199c5a0-0000-7000-8000-000000000001',
    resourceVersion: '4711',
  },
  object: '{"kind":"Widget","metadata":{"name":"blue","labels":{"app": "web"}},"spec":{}}',
  size: 77,
  labels: '{"app": "web"}',
  oldLabels: null,
};

const labels = fc.dictionary(fc.string(), fc.string({ unit: 'grapheme' }), { maxKeys: 4, noNullPrototype: true });
const part = fc.string({ unit: 'grapheme', maxLength: 20 }).map((value) => value.replaceAll('/', '|'));
const event = fc
  .record({
    stream: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
    seq: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
    id: fc.uuid(),
    type: fc.constantFrom(...EVENT_TYPES, 'SKIPPED' as const),
    time: fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }),
    txid: fc.nat().map(String),
    traceparent: fc.option(fc.string({ maxLength: 60 })),
    subject: fc.record({
      tenant: part,
      group: part,
      kind: part,
      name: fc.string({ unit: 'grapheme', maxLength: 20 }),
      uid: fc.uuid(),
      resourceVersion: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String),
    }),
    labels: fc.option(labels),
    spec: fc.jsonValue(),
    oldLabels: fc.option(labels.map((value) => JSON.stringify(value))),
  })
  .map(({ labels: given, spec, ...rest }): NumberedEvent => {
    const object = JSON.stringify({ kind: 'K', metadata: { name: 'n', ...(given && { labels: given }) }, spec });
    return { ...rest, object, size: Buffer.byteLength(object), labels: JSON.stringify(given ?? {}) };
  });

describe('an event as a Kafka record', () => {
  it('is a CloudEvent in binary mode', () => {
    expect(toRecord({ ...BLUE, traceparent: '00-aa-bb-01', oldLabels: '{"app": "api"}' })).toEqual({
      key: '0199c5a0-0000-7000-8000-000000000001',
      value: BLUE.object,
      headers: {
        'content-type': 'application/json',
        ce_specversion: '1.0',
        ce_id: '0199c5a0-0000-7000-8000-00000000000e',
        ce_source: '/plumbline/acme',
        ce_type: 'dev.plumbline.modified',
        ce_subject: 'example.dev/Widget/blue',
        ce_time: '2026-11-29T10:00:00.120Z',
        ce_tenant: 'acme',
        ce_uid: '0199c5a0-0000-7000-8000-000000000001',
        ce_resourceversion: '4711',
        ce_seq: '9007199254740993',
        ce_txid: '777',
        ce_stream: '7',
        ce_traceparent: '00-aa-bb-01',
        ce_oldlabels: '{"app": "api"}',
      },
    });
  });

  it('has no headers for what is absent', () => {
    const { headers } = toRecord(BLUE);
    expect(Object.keys(headers)).not.toContain('ce_traceparent');
    expect(Object.keys(headers)).not.toContain('ce_oldlabels');
  });

  it('has neither data nor their type when it was skipped', () => {
    const { value, headers } = toRecord({ ...BLUE, type: 'SKIPPED' });
    expect(value).toBeNull();
    expect(headers['ce_type']).toBe('dev.plumbline.skipped');
    expect(Object.keys(headers)).not.toContain('content-type');
  });

  it('comes back as it was, through the bytes of the wire', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 5 }), async (events) => {
        const records = await overTheWire(events);
        for (const [index, record] of records.entries()) {
          const given = events[index]!;
          const back = toEvent(record)!;
          expect(numberOf(record)).toEqual({ stream: given.stream, seq: given.seq });
          const skipped = given.type === 'SKIPPED' && { object: 'null', size: 0, labels: '{}' };
          // Labels are compared by what they say: their order and spaces are nobody's concern.
          expect({ ...back, labels: JSON.parse(back.labels) }).toEqual({
            ...given,
            ...skipped,
            labels: skipped ? {} : JSON.parse(given.labels),
            position: BigInt(index),
          });
        }
      }),
    );
  });

  it('does not read the object before its labels are asked for', () => {
    const back = toEvent({ ...message(BLUE), value: Buffer.from('{no JSON}') });
    expect(back?.object).toBe('{no JSON}');
    expect(() => back?.labels).toThrow(SyntaxError);
  });
});

describe('a record of a stranger', () => {
  const mine = message(BLUE);
  const without = (name: string): IHeaders => ({ ...mine.headers, [name]: undefined });

  it.each(['ce_stream', 'ce_seq'])('has no number without %s', (name) => {
    expect(numberOf({ headers: without(name) })).toBeUndefined();
    expect(toEvent({ ...mine, headers: without(name) })).toBeUndefined();
  });

  it.each(['ce_type', 'ce_subject', 'ce_tenant', 'ce_uid', 'ce_resourceversion', 'ce_id', 'ce_time'])(
    'is no event without %s',
    (name) => {
      expect(toEvent(mine)).toBeDefined();
      expect(toEvent({ ...mine, headers: without(name) })).toBeUndefined();
    },
  );

  it.each([
    ['ce_seq', '-1'],
    ['ce_seq', '1e3'],
    ['ce_seq', ''],
    ['ce_stream', '99999999999999999999'],
    ['ce_type', 'com.example.other'],
    ['ce_subject', 'Widget'],
    ['ce_time', 'yesterday'],
  ])('is no event when %s is "%s"', (name, value) => {
    expect(toEvent({ ...mine, headers: { ...mine.headers, [name]: Buffer.from(value) } })).toBeUndefined();
  });

  it('is no event when a header is there twice', () => {
    const headers = { ...mine.headers, ce_seq: [Buffer.from('1'), Buffer.from('2')] };
    expect(numberOf({ headers })).toBeUndefined();
  });

  it('is no event when the value does not go with the type', () => {
    expect(toEvent({ ...mine, value: null })).toBeUndefined();
    expect(toEvent({ ...message({ ...BLUE, type: 'SKIPPED' }), value: Buffer.from('{}') })).toBeUndefined();
    expect(toEvent({ offset: '0', value: null, headers: {} })).toBeUndefined();
  });
});

/** As kafkajs hands it over. */
function message(given: NumberedEvent): Pick<KafkaMessage, 'headers' | 'value' | 'offset'> {
  const { value, headers } = toRecord(given);
  const bytes = Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)]);
  return { offset: '3', value: value === null ? null : Buffer.from(value), headers: Object.fromEntries(bytes) };
}

/** Encoded as a producer sends it, and decoded as a consumer gets it. */
async function overTheWire(events: readonly NumberedEvent[]): Promise<KafkaMessage[]> {
  const request = await produceRequest({
    acks: -1,
    timeout: 1,
    producerId: '1',
    topicData: [{ topic: 't', partitions: [{ partition: 0, messages: events.map(toRecord) }] }],
  });
  // The batch follows transactional id, acks, timeout, one topic, one partition, and its size.
  const { records } = await decodeBatch(new Decoder(request!.subarray(2 + 2 + 4 + 4 + 3 + 4 + 4 + 4)));
  return records;
}

describe('a record that would end its frame, or its place in one', () => {
  const good = toRecord(BLUE);
  const messageOf = (headers: object, value: string): Pick<KafkaMessage, 'headers' | 'value' | 'offset'> => ({
    headers: Object.fromEntries(Object.entries({ ...good.headers, ...headers }).map(([k, v]) => [k, Buffer.from(v)])),
    value: Buffer.from(value),
    offset: '0',
  });

  it.each([
    ['an object on two lines', {}, '{"a":\n1}'],
    ['an object with a carriage return', {}, '{"a":\r1}'],
    ['what is no object', {}, 'null'],
    ['half an object', {}, '{"a":'],
    ['an id with a quote', { ce_id: 'x","data":{' }, '{}'],
    ['a uid with a line break', { ce_uid: 'x\n\nevent: ERROR' }, '{}'],
    ['a resourceVersion that is no number', { ce_resourceversion: '1"' }, '{}'],
  ])('is no event: %s', (_, headers, value) => {
    expect(toEvent(messageOf(headers, value))).toBeUndefined();
    expect(toEvent(messageOf({}, '{}'))).toBeDefined();
  });
});
