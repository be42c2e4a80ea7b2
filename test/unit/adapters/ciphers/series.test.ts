import { Buffer } from 'node:buffer';

import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { rotatingBox } from '#adapters/ciphers/rotating-box.ts';
import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { KEYS_READ_EVERY_MS } from '#core/ports/cursor-keys.ts';

const box = secretBox([{ id: 7, key: new Uint8Array(32).fill(7) }]);
const PLAINTEXT = Uint8Array.of(1, 2, 3);
const numbers = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe('a series of tokens', () => {
  it('opens as what each was sealed with', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.string(), numbers, (plaintext, associatedData, number) => {
        const token = box.sealSeries(plaintext, associatedData)(number);
        expect(box.openSeries(token, associatedData)).toEqual({ plaintext, number });
      }),
    );
  });

  it('is another one each time it is begun', () => {
    const tokens = Array.from({ length: 200 }, () => box.sealSeries(PLAINTEXT, 'x')(5).split('.'));
    for (const part of [0, 1]) expect(new Set(tokens.map((token) => token[part])).size).toBe(200);
  });

  it('refuses numbers that it has no room for', () => {
    const seal = box.sealSeries(PLAINTEXT, 'x');
    for (const number of [-1, 0.5, 2 ** 32, Number.NaN]) expect(() => seal(number)).toThrow(RangeError);
  });

  it('opens with its associated data only, and no token of another kind opens as one of it', () => {
    const token = box.sealSeries(PLAINTEXT, 'x')(5);
    const [head = '', block = ''] = token.split('.');
    expect(box.openSeries(token, 'y')).toBe('malformed');
    for (const other of [token, head, block]) expect(box.open(other, 'x')).toBe('malformed');
    for (const binding of ['x', 'series/x']) expect(box.open(token, binding)).toBe('malformed');
    const sealed = box.seal(Uint8Array.from([...new Uint8Array(16), 1]), 'x');
    for (const other of [sealed, `${sealed}.${block}`, `${head}.`, `.${block}`, block, '']) {
      expect(box.openSeries(other, 'x'), other).toBe('malformed');
    }
  });

  it('opens one form of its text only', () => {
    const token = box.sealSeries(PLAINTEXT, 'x')(5);
    // The last character of a block has four bits that say nothing.
    const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const same = last
      .split('')
      .filter((character) => box.openSeries(token.slice(0, -1) + character, 'x') !== 'malformed');
    expect(same).toEqual([token.at(-1)]);
    expect(box.openSeries(`${token}=`, 'x')).toBe('malformed');
  });

  it('does not open a block that was not made for it', () => {
    const [head] = box.sealSeries(PLAINTEXT, 'x')(5).split('.');
    for (let n = 0; n < 2_000; n += 1) {
      const block = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url');
      expect(box.openSeries(`${head}.${block}`, 'x')).toBe('malformed');
    }
  });
});

describe('a series that is begun under a ring of keys that changes', () => {
  afterEach(() => vi.useRealTimers());

  it('is sealed with the key that seals now, so that its tokens are not retired while it lasts', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const keys = [7, 8].map((id) => ({ id, key: new Uint8Array(32).fill(id) }));
    let ring = { keys: keys.slice(0, 1), sealingId: 7 };
    const stopping = new AbortController();
    const rotating = await rotatingBox({ read: async () => ring }, stopping.signal);
    const seal = rotating.sealSeries(PLAINTEXT, 'x');
    const before = seal(1);
    ring = { keys: keys.slice(1), sealingId: 8 };
    await vi.advanceTimersByTimeAsync(KEYS_READ_EVERY_MS);
    expect(rotating.openSeries(before, 'x')).toBe('retired');
    expect(rotating.openSeries(seal(1), 'x')).toEqual({ plaintext: PLAINTEXT, number: 1 });
    expect(seal(2).split('.')[0]).toBe(seal(3).split('.')[0]);
    stopping.abort();
  });
});
