import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DatedCursorKey, formatCursorKeys, parseCursorKeys, ringAt } from '#adapters/node/cursor-key-text.ts';

const key = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const time = fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true });
const keys: fc.Arbitrary<readonly DatedCursorKey[]> = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 3 }), key, time), { minLength: 1, maxLength: 40 })
  .map((entries) => {
    let id = -1;
    return entries.map(([gap, bytes, sealsFrom]) => ({ id: (id += gap), key: bytes, sealsFrom }));
  });

test('what is written is read back as the same keys', () => {
  fc.assert(
    fc.property(keys, (keys) => {
      expect(parseCursorKeys(formatCursorKeys(keys))).toEqual(keys);
    }),
  );
});

test('the newest key whose time has come seals; before all times, the oldest', () => {
  const of = (id: number, sealsFrom: number): DatedCursorKey => ({
    id,
    key: Buffer.alloc(32),
    sealsFrom: new Date(sealsFrom),
  });
  const ring = [of(1, 10), of(2, 20), of(3, 15)];
  expect([5, 10, 14, 15, 20, 30].map((now) => ringAt(ring, now).sealingId)).toEqual([1, 1, 1, 3, 3, 3]);
});

test('what is no key is told by its number, and never shown', () => {
  const good = 'B'.repeat(42);
  const text = `0:${good}A\n1:${good}?`;
  expect(() => parseCursorKeys(text)).toThrow(/^key 2 is malformed/);
  expect(() => parseCursorKeys(text)).not.toThrow(new RegExp(good));
  expect(() => parseCursorKeys(' \n')).toThrow('there is no key');
});
