import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { createVarintReader, writeVarint } from '#core/varint.ts';

const write = (...values: bigint[]): number[] => {
  const bytes: number[] = [];
  for (const value of values) writeVarint(bytes, value);
  return bytes;
};
const readOne = (...bytes: number[]) => createVarintReader(Uint8Array.from(bytes)).next();

describe('varints', () => {
  it.each([
    [0n, [0]],
    [127n, [127]],
    [128n, [128, 1]],
    [300n, [172, 2]],
    [2n ** 63n - 1n, [255, 255, 255, 255, 255, 255, 255, 255, 127]],
    [2n ** 64n - 1n, [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]],
  ])('write %s in its shortest form', (value, bytes) => {
    expect(write(value)).toEqual(bytes);
  });

  it('are read back one after the other, to the end', () => {
    const value = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.nat().map(BigInt));
    fc.assert(
      fc.property(fc.array(value), (values) => {
        const reader = createVarintReader(Uint8Array.from(write(...values)));
        expect(values.map(() => reader.next())).toEqual(values);
        expect(reader.atEnd()).toBe(true);
      }),
    );
  });

  it('have one form each: what can be read is what would be written', () => {
    const byte = fc.oneof(fc.nat(255), fc.constantFrom(0, 128, 255));
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 12 }), (bytes) => {
        const value = readOne(...bytes);
        if (value !== undefined) expect(bytes.slice(0, write(value).length)).toEqual(write(value));
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    ['no byte', []],
    ['a number that does not end', [128, 128]],
    ['a longer form than needed', [129, 0]],
    ['a longer zero', [128, 0]],
    ['2^64', [128, 128, 128, 128, 128, 128, 128, 128, 128, 2]],
    ['eleven bytes', [255, 255, 255, 255, 255, 255, 255, 255, 255, 129, 1]],
  ])('are not read from %s', (_, bytes) => {
    expect(readOne(...bytes)).toBeUndefined();
  });

  it('are not written for what they cannot hold', () => {
    expect(() => write(-1n)).toThrow(RangeError);
    expect(() => write(2n ** 64n)).toThrow(RangeError);
  });
});
