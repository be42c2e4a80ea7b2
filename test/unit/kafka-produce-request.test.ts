import { createRequire } from 'node:module';

import fc from 'fast-check';
import { CompressionTypes } from 'kafkajs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { crc32c } from '#adapters/kafka/wire/crc32c.ts';
import { type ProduceArgs, produceRequest } from '#adapters/kafka/wire/produce-request.ts';

// By require: the encoder as kafkajs ships it, whatever was put into its place elsewhere.
const require = createRequire(import.meta.url);
const stockRequest = require('kafkajs/src/protocol/requests/produce/v7/request.js');

async function stockBytes(args: ProduceArgs): Promise<Buffer> {
  return (await stockRequest(args).encode()).buffer;
}

const text = fc.oneof(
  fc.string({ maxLength: 80 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  // Lone surrogates as well, and lengths around those where a varint grows.
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.nat({ max: 20_000 }).map((length) => 'x'.repeat(length)),
  fc.constantFrom(
    '',
    'é'.repeat(31),
    'x'.repeat(47),
    'x'.repeat(48),
    'x'.repeat(63),
    'x'.repeat(64),
    'x'.repeat(8_192),
  ),
);
const record = fc.record(
  {
    key: fc.option(text),
    value: fc.option(text),
    headers: fc.dictionary(text, text, { maxKeys: 16, noNullPrototype: true }),
  },
  { requiredKeys: ['value'] },
);
const topicData = fc.array(
  fc.record({
    topic: fc.string({ maxLength: 200 }),
    partitions: fc.array(
      fc.record({
        partition: fc.nat({ max: 100 }),
        firstSequence: fc.nat(),
        messages: fc.array(record, { minLength: 1, maxLength: 20 }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  { maxLength: 3 },
);
const args = fc.record({
  acks: fc.constant(-1),
  timeout: fc.nat(),
  producerId: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String),
  producerEpoch: fc.nat({ max: 32_767 }),
  compression: fc.constantFrom(CompressionTypes.None, CompressionTypes.GZIP),
  topicData,
});

describe('a Produce request', () => {
  beforeEach(() => {
    vi.spyOn(Date, 'now').mockReturnValue(1_796_000_000_123);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('is byte for byte the one that kafkajs makes', async () => {
    await fc.assert(
      fc.asyncProperty(args, async (given) => {
        const bytes = await produceRequest(given);
        expect(bytes?.equals(await stockBytes(given))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('is so for many large records', async () => {
    const messages = Array.from({ length: 3_000 }, (_, index) => {
      return { key: `k${index}`, value: `${index} ${'ü'.repeat(index % 1_500)}`, headers: { a: `${index}` } };
    });
    const given = produceArgs([{ partition: 0, firstSequence: 7, messages }]);
    const bytes = await produceRequest(given);
    expect(bytes?.equals(await stockBytes(given))).toBe(true);
  });

  it.each([
    ['a time of its own', { value: 'v', timestamp: '1796000000000' }],
    ['bytes for a value', { value: Buffer.from('v') }],
    ['bytes for a key', { key: Buffer.from('k'), value: 'v' }],
    ['bytes for a header', { value: 'v', headers: { a: Buffer.from('h') } }],
    ['a header twice', { value: 'v', headers: { a: ['1', '2'] } }],
  ])('is left to kafkajs for a record with %s', async (_, message) => {
    const messages = [{ value: 'plain' }, message];
    expect(await produceRequest(produceArgs([{ partition: 0, firstSequence: 0, messages }]))).toBeUndefined();
  });

  it('is left to kafkajs inside of a transaction, and with codecs that are not built in', async () => {
    const given = produceArgs([{ partition: 0, firstSequence: 0, messages: [{ value: 'v' }] }]);
    expect(await produceRequest({ ...given, transactionalId: 't' })).toBeUndefined();
    expect(await produceRequest({ ...given, compression: CompressionTypes.ZSTD })).toBeUndefined();
    expect(await produceRequest(given)).toBeDefined();
  });
});

describe('crc32c', () => {
  it('has the check value of the algorithm', () => {
    expect(crc32c(Buffer.from('123456789'), 0, 9)).toBe(0xe3069283);
  });

  it('covers what it is told to', () => {
    expect(crc32c(Buffer.from('--123456789--'), 2, 11)).toBe(0xe3069283);
    expect(crc32c(Buffer.alloc(32, 0xff), 0, 32)).toBe(0x62a8ab43);
    expect(crc32c(Buffer.alloc(0), 0, 0)).toBe(0);
  });
});

function produceArgs(partitions: ProduceArgs['topicData'][number]['partitions']): ProduceArgs {
  return { acks: -1, timeout: 1_000, producerId: '5', producerEpoch: 0, topicData: [{ topic: 't', partitions }] };
}
