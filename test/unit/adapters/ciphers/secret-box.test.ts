import { Buffer } from 'node:buffer';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { gcmSivVectors } from '#test/unit/adapters/ciphers/rfc8452-vectors.ts';

const keyOf = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
const box = secretBox([{ id: 7, key: keyOf(7) }]);
const text = fc.string({ unit: 'binary' });

describe('the cipher', () => {
  it.each(gcmSivVectors)('seals as RFC 8452 appendix C.2 says: $plaintext with $associatedData', (vector) => {
    const hex = (digits: string) => Uint8Array.from(Buffer.from(digits, 'hex'));
    const associatedData = Buffer.from(vector.associatedData, 'hex').toString('utf8');
    expect(Buffer.from(associatedData).toString('hex'), 'this vector is text').toBe(vector.associatedData);
    const known = secretBox([{ id: 0, key: hex(vector.key) }], { randomBytes: () => hex(vector.nonce) });
    const token = known.seal(hex(vector.plaintext), associatedData);
    expect(Buffer.from(token, 'base64url').toString('hex')).toBe(`00${vector.nonce}${vector.result}`);
    expect(known.open(token, associatedData)).toEqual(hex(vector.plaintext));
  });
});

describe('secretBox', () => {
  it('opens what it sealed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 700 }), text, (plaintext, associatedData) => {
        expect(box.open(box.seal(plaintext, associatedData), associatedData)).toEqual(plaintext);
      }),
    );
  });

  it('makes another token each time, over many nonces', () => {
    const tokens = new Set(Array.from({ length: 2000 }, () => box.seal(Uint8Array.of(1), 'x')));
    expect(tokens.size).toBe(2000);
    const nonces = new Set([...tokens].map((token) => Buffer.from(token, 'base64url').subarray(1, 13).toString('hex')));
    expect(nonces.size).toBe(2000);
  });

  it('makes tokens that need no escaping in a URL', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (plaintext) => {
        expect(box.seal(plaintext, '')).toMatch(/^[\w-]+$/);
      }),
    );
  });

  it('opens with the same associated data only', () => {
    fc.assert(
      fc.property(text, text, (sealed, opened) => {
        fc.pre(sealed !== opened);
        expect(box.open(box.seal(Uint8Array.of(1, 2), sealed), opened)).toBe('malformed');
      }),
    );
  });

  it('never opens a token of which a bit was turned', () => {
    const bytes = Buffer.from(box.seal(Uint8Array.of(1, 2, 3), 'x'), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const turned = Buffer.from(bytes);
      turned[bit >> 3]! ^= 1 << (bit & 7);
      expect(box.open(turned.toString('base64url'), 'x'), `bit ${bit}`).toBeTypeOf('string');
    }
  });

  it('knows one text for a token: no padding, no other alphabet, no white space, no loose bits', () => {
    const token = box.seal(Uint8Array.of(1, 2), 'x');
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const looseBits = token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1)!) ^ 1]!;
    expect(Buffer.from(looseBits, 'base64url')).toEqual(Buffer.from(token, 'base64url'));
    for (const other of [looseBits, `${token}=`, `${token}\n`, ` ${token}`, token.replace(/[-_]|$/, '+')]) {
      expect(box.open(other, 'x'), other).toBe('malformed');
    }
    expect(box.open(token, 'x')).toEqual(Uint8Array.of(1, 2));
  });

  it('takes any other text for malformed or of a retired key, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.base64String(), fc.stringMatching(/^[\w-]*$/)), (token) => {
        expect(['malformed', 'retired']).toContain(box.open(token, 'x'));
      }),
    );
  });

  it('seals under the newest key and opens under all', () => {
    const old = box.seal(Uint8Array.of(1), 'x');
    const rotated = secretBox([
      { id: 7, key: keyOf(7) },
      { id: 9, key: keyOf(9) },
    ]);
    expect(rotated.open(old, 'x')).toEqual(Uint8Array.of(1));
    expect(Buffer.from(rotated.seal(Uint8Array.of(1), 'x'), 'base64url')[0]).toBe(9);
    expect(box.open(rotated.seal(Uint8Array.of(1), 'x'), 'x'), 'a key that this ring does not know yet').toBe(
      'malformed',
    );
  });

  it('tells a retired key from one that never was', () => {
    const old = box.seal(Uint8Array.of(1), 'x');
    expect(secretBox([{ id: 9, key: keyOf(9) }]).open(old, 'x')).toBe('retired');
    expect(secretBox([{ id: 6, key: keyOf(6) }]).open(old, 'x')).toBe('malformed');
    expect(secretBox([{ id: 9, key: keyOf(9) }]).open('Bw', 'x'), 'too short to be a token').toBe('malformed');
  });

  it('seals under the key that it is told to, and opens what newer ones sealed', () => {
    const ring = [
      { id: 7, key: keyOf(7) },
      { id: 8, key: keyOf(8) },
    ];
    const before = secretBox(ring, { sealingId: 7 });
    const after = secretBox(ring);
    expect(Buffer.from(before.seal(Uint8Array.of(1), 'x'), 'base64url')[0]).toBe(7);
    expect(before.open(after.seal(Uint8Array.of(1), 'x'), 'x')).toEqual(Uint8Array.of(1));
    expect(() => secretBox(ring, { sealingId: 6 })).toThrow('6, is not in the ring');
  });

  it('goes on rotating beyond the 256th key', () => {
    for (let id = 0; id <= 1_000; id++) {
      const [older, newer] = [secretBox([{ id, key: keyOf(id) }]), { id: id + 1, key: keyOf(id + 1) }];
      const token = older.seal(Uint8Array.of(1), 'x');
      expect(secretBox([{ id, key: keyOf(id) }, newer]).open(token, 'x')).toEqual(Uint8Array.of(1));
      expect(secretBox([newer]).open(token, 'x')).toBe('retired');
      expect(older.open(secretBox([newer]).seal(Uint8Array.of(1), 'x'), 'x')).toBe('malformed');
    }
    const [first, last] = [
      { id: 1_000, key: keyOf(1) },
      { id: 1_127, key: keyOf(2) },
    ];
    expect(secretBox([first, last]).open(secretBox([first]).seal(Uint8Array.of(1), 'x'), 'x')).toEqual(
      Uint8Array.of(1),
    );
  });

  it('keeps its keys when the caller wipes them', () => {
    const key = keyOf(3);
    const own = secretBox([{ id: 1, key }]);
    const token = own.seal(Uint8Array.of(1), 'x');
    key.fill(0);
    expect(own.open(token, 'x')).toEqual(Uint8Array.of(1));
  });

  it.each([
    ['an empty ring', []],
    ['an id above 32767', [{ id: 32_768, key: keyOf(1) }]],
    ['a broken id', [{ id: 1.5, key: keyOf(1) }]],
    ['a negative id', [{ id: -1, key: keyOf(1) }]],
    ['a short key', [{ id: 1, key: new Uint8Array(16) }]],
    [
      'an id twice',
      [
        { id: 1, key: keyOf(1) },
        { id: 1, key: keyOf(2) },
      ],
    ],
    [
      'ids 128 apart',
      [
        { id: 1, key: keyOf(1) },
        { id: 129, key: keyOf(2) },
      ],
    ],
    [
      'ids that fall',
      [
        { id: 2, key: keyOf(1) },
        { id: 1, key: keyOf(2) },
      ],
    ],
  ])('refuses %s', (_, keys) => {
    expect(() => secretBox(keys)).toThrow(RangeError);
  });
});
