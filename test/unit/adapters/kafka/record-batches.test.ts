import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { crc32c } from '#adapters/kafka/wire/crc32c.ts';
import { CorruptBatch, visitRecords } from '#adapters/kafka/wire/record-batches.ts';
import { recordSet, type TextRecord } from '#adapters/kafka/wire/record-set.ts';

test('shows the records of several batches, from the middle of one, and where to go on', () => {
  const bytes = Buffer.concat([batch(10, ['a', 'b', 'c']), batch(13, ['d']), batch(14, ['e', 'f'])]);
  expect(values(bytes, 0)).toEqual({ values: ['a', 'b', 'c', 'd', 'e', 'f'], next: 16n });
  expect(values(bytes, 12)).toEqual({ values: ['c', 'd', 'e', 'f'], next: 16n });
  expect(values(bytes, 14)).toEqual({ values: ['e', 'f'], next: 16n });
  expect(values(bytes, 16)).toEqual({ values: [], next: 16n });
});

test('stops where it is told to, and says so', () => {
  const bytes = Buffer.concat([batch(10, ['a', 'b', 'c']), batch(13, ['d'])]);
  expect(values(bytes, 10, 'b')).toEqual({ values: ['a'], next: 11n });
  expect(values(bytes, 10, 'd')).toEqual({ values: ['a', 'b', 'c'], next: 13n });
});

test('leaves out a last batch that is cut off, wherever', () => {
  const whole = batch(0, ['a', 'b']);
  const cut = batch(2, ['c'.repeat(100)]);
  for (let length = 0; length < cut.length; length += 1) {
    expect(values(Buffer.concat([whole, cut.subarray(0, length)]), 0)).toEqual({ values: ['a', 'b'], next: 2n });
  }
});

test('goes behind a batch whose last records were compacted away, and one of the broker’s own', () => {
  expect(values(batch(5, ['a'], { lastDelta: 9 }), 0)).toEqual({ values: ['a'], next: 15n });
  expect(values(batch(5, ['mark'], { attributes: 0x20 }), 0)).toEqual({ values: [], next: 6n });
});

test('unpacks gzip and zstd; what cannot be unpacked is told and left out', () => {
  const told: string[] = [];
  const bytes = Buffer.concat([
    batch(0, ['a'], { attributes: 1, pack: gzipSync }),
    batch(1, ['b'], { attributes: 4, pack: zstdCompressSync }),
    batch(2, ['c'], { attributes: 3 }),
    batch(3, ['d'], { attributes: 1 }),
    batch(4, ['e'], { magic: 1 }),
    batch(5, ['f']),
  ]);
  expect(values(bytes, 0, undefined, told)).toEqual({ values: ['a', 'b', 'f'], next: 6n });
  expect(told).toEqual([
    expect.stringContaining('compression.type'),
    expect.stringContaining('cannot be unpacked'),
    expect.stringContaining('of format 1'),
  ]);
});

test('finds every flipped bit', () => {
  const bytes = batch(0, ['a record', 'another']);
  for (let at = 21; at < bytes.length; at += 1) {
    const broken = Buffer.from(bytes);
    broken[at]! ^= 1 << (at % 8);
    expect(() => values(broken, 0)).toThrow(CorruptBatch);
  }
});

test('gives the headers as they are, whatever their names', () => {
  const given = { ['__proto__']: 'x', toString: 'y', empty: '' };
  const seen: object[] = [];
  const look = ({ headers }: { readonly headers: object }): boolean => Boolean(seen.push(headers));
  visitRecords(batch(0, ['a'], { headers: given }), 0n, look, () => undefined);
  expect(Object.entries(seen[0]!).map(([name, value]) => [name, String(value)])).toEqual(Object.entries(given));
});

interface BatchOptions {
  readonly attributes?: number;
  readonly magic?: number;
  readonly lastDelta?: number;
  readonly pack?: (bytes: Buffer) => Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** As a broker would send it. */
function batch(base: number, texts: readonly string[], options: BatchOptions = {}): Buffer {
  const { attributes = 0, magic = 2, lastDelta = texts.length - 1, pack = (bytes) => bytes, headers = {} } = options;
  const set = recordSet(texts.map((value): TextRecord => ({ key: 'k', value, headers })));
  const plain = Buffer.alloc(set.size);
  set.write(plain, 0);
  const records = pack(plain);
  const bytes = Buffer.alloc(61 + records.length);
  bytes.writeBigInt64BE(BigInt(base), 0);
  bytes.writeInt32BE(bytes.length - 12, 8);
  bytes.writeInt8(magic, 16);
  bytes.writeInt16BE(attributes, 21);
  bytes.writeInt32BE(lastDelta, 23);
  bytes.writeInt32BE(texts.length, 57);
  records.copy(bytes, 61);
  bytes.writeUInt32BE(crc32c(bytes, 21, bytes.length), 17);
  return bytes;
}

function values(
  bytes: Buffer,
  from: number,
  until?: string,
  told: string[] = [],
): { values: readonly string[]; next: bigint } {
  const seen: string[] = [];
  const next = visitRecords(
    bytes,
    BigInt(from),
    ({ value }) => {
      if (String(value) === until) return false;
      seen.push(String(value));
      return true;
    },
    (reason) => void told.push(reason),
  );
  return { values: seen, next };
}
