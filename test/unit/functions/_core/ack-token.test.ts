import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { type Acked, createAckTokens } from '#core/ack-token.ts';
import { createContinueTokens } from '#core/continue-token.ts';
import { createCursors } from '#core/cursor.ts';

const MAX = 2n ** 63n - 1n;
const count = fc.oneof(fc.bigInt({ min: 0n, max: MAX }), fc.nat().map(BigInt));
const ofLane: fc.Arbitrary<Acked> = fc.record({
  of: fc.constant('lane' as const),
  group: count,
  stream: count,
  lane: fc.nat(15),
  fence: count,
  point: fc.record({ seq: count, position: count }),
});
const ofDeadLetter: fc.Arbitrary<Acked> = fc.record({
  of: fc.constant('deadLetter' as const),
  group: count,
  stream: count,
  id: count,
  fence: count,
});
const ackeds = fc.oneof(ofLane, ofDeadLetter);

const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
const box = secretBox([{ id: 3, key: key(1) }]);
const tokens = createAckTokens(box);
const EXAMPLE: Acked = {
  of: 'lane',
  group: 7n,
  stream: 12n,
  lane: 15,
  fence: 3n,
  point: { seq: 900n, position: 900n },
};

describe('an ack token', () => {
  it('opens as what was sealed, for its audience', () => {
    fc.assert(
      fc.property(ackeds, fc.constantFrom('public', 'private'), (acked, audience) => {
        expect(tokens.open(tokens.seal(acked, audience), audience)).toEqual(acked);
      }),
    );
  });

  it('is short: it rides on every event', () => {
    expect(tokens.seal(EXAMPLE, 'public').length).toBeLessThan(64);
  });

  it('of the other audience is malformed', () => {
    expect(tokens.open(tokens.seal(EXAMPLE, 'public'), 'private')).toBe('malformed');
    expect(tokens.open(tokens.seal(EXAMPLE, 'private'), 'public')).toBe('malformed');
  });

  it('with any bit flipped is malformed or of a key that is not there, and never another token', () => {
    const bytes = Buffer.from(tokens.seal(EXAMPLE, 'public'), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      const opened = tokens.open(flipped.toString('base64url'), 'public');
      expect(opened, `bit ${bit}`).toBe(bit < 8 && flipped[0]! < 3 ? 'retired' : 'malformed');
    }
  });

  it('that is cut or longer is malformed', () => {
    const token = tokens.seal(EXAMPLE, 'public');
    for (let length = 0; length < token.length; length++) {
      expect(tokens.open(token.slice(0, length), 'public')).toBe('malformed');
    }
    for (const more of ['A', 'AAAA', '=', '\n', 'A'.repeat(100_000)]) {
      expect(tokens.open(token + more, 'public')).toBe('malformed');
    }
  });

  it('of another ring is malformed, and of a key that left the ring retired', () => {
    const token = tokens.seal(EXAMPLE, 'public');
    expect(createAckTokens(secretBox([{ id: 3, key: key(2) }])).open(token, 'public')).toBe('malformed');
    expect(createAckTokens(secretBox([{ id: 4, key: key(1) }])).open(token, 'public')).toBe('retired');
  });

  it('is no cursor and no continue token, and these are no ack tokens', () => {
    const cursors = createCursors(box);
    const continues = createContinueTokens(box);
    const token = tokens.seal(EXAMPLE, 'public');
    expect(() => cursors.open(token, 'public', '*')).toThrow('malformed');
    expect(() => continues.open(token, '[]')).toThrow('malformed');
    const cursor = cursors.seal(new Map([[12n, EXAMPLE.of === 'lane' ? EXAMPLE.point : never()]]), 'public', '*');
    expect(tokens.open(cursor, 'public')).toBe('malformed');
    const next = continues.seal({ after: { tenant: 'a', name: 'b' } }, '[]');
    expect(tokens.open(next, 'public')).toBe('malformed');
  });

  it('with a plaintext that no token has is malformed, though it was sealed here', () => {
    const open = (...plaintext: number[]): unknown =>
      tokens.open(box.seal(Uint8Array.from(plaintext), 'plumbline/ack/1/public'), 'public');
    expect(open(0, 7, 12, 15, 3, 5, 0)).toEqual({ ...EXAMPLE, point: { seq: 5n, position: 5n } });
    expect(open(0, 7, 12, 16, 3, 5, 0), 'lane 16').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5, 13), 'position -2').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5), 'no position').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5, 0, 0), 'one number more').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5, 128), 'half a number').toBe('malformed');
    expect(open(1, 7, 12, 9, 2)).toEqual({ of: 'deadLetter', group: 7n, stream: 12n, id: 9n, fence: 2n });
    expect(open(1, 7, 12, 9), 'no fence').toBe('malformed');
    expect(open(1, 7, 12, 9, 2, 0), 'one number more').toBe('malformed');
    expect(open(2, 7, 12, 9, 2), 'of something else').toBe('malformed');
    expect(open(), 'nothing').toBe('malformed');
  });
});

function never(): never {
  throw new Error('the example is of a lane');
}
