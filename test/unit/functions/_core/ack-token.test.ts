import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { type Acked, createAckTokens } from '#core/ack-token.ts';
import type { Audience } from '#core/identity.ts';
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
const EXAMPLE = {
  of: 'lane' as const,
  group: 7n,
  stream: 12n,
  lane: 15,
  fence: 3n,
  point: { seq: 900n, position: 900n },
};

function seal(acked: Acked, audience: Audience): string {
  return acked.of === 'lane' ? tokens.ofLane(acked, audience)(acked.point) : tokens.ofDeadLetter(acked, audience);
}

const LANE = { group: 7n, stream: 12n, lane: 15, fence: 3n };

describe('an ack token', () => {
  it('opens as what was sealed, for its audience', () => {
    fc.assert(
      fc.property(ackeds, fc.constantFrom('public', 'private'), (acked, audience) => {
        expect(tokens.open(seal(acked, audience), audience)).toEqual(acked);
      }),
    );
  });

  it('is short: it rides on every event', () => {
    expect(seal(EXAMPLE, 'public').length).toBeLessThan(104);
  });

  it('of the other audience is malformed', () => {
    expect(tokens.open(seal(EXAMPLE, 'public'), 'private')).toBe('malformed');
    expect(tokens.open(seal(EXAMPLE, 'private'), 'public')).toBe('malformed');
  });

  it('with any bit flipped is malformed or of a key that is not there, and never another token', () => {
    const parts = seal(EXAMPLE, 'public')
      .split('.')
      .map((part) => Buffer.from(part, 'base64url'));
    for (const [index, bytes] of parts.entries()) {
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = Buffer.from(bytes);
        flipped[bit >> 3]! ^= 1 << (bit & 7);
        const token = parts.with(index, flipped).map((part) => part.toString('base64url'));
        const isOlderKey = index === 0 && bit < 8 && flipped[0]! < 3;
        expect(tokens.open(token.join('.'), 'public'), `bit ${bit}`).toBe(isOlderKey ? 'retired' : 'malformed');
      }
    }
  });

  it('of one lane, audience or fence is not made of parts of others', () => {
    const made = [
      seal(EXAMPLE, 'public'),
      seal({ ...EXAMPLE, lane: 3 }, 'public'),
      seal({ ...EXAMPLE, fence: 4n }, 'public'),
      seal(EXAMPLE, 'private'),
      seal(EXAMPLE, 'public'),
    ].map((token) => token.split('.'));
    for (const [a, [head]] of made.entries()) {
      for (const [b, [, block]] of made.entries()) {
        if (a !== b) expect(tokens.open(`${head}.${block}`, 'public'), `${a}, ${b}`).toBe('malformed');
      }
    }
  });

  it('opens as its own point, wherever the points of its lane lie', () => {
    const points = fc.array(fc.record({ seq: count, position: count }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(points, fc.array(fc.nat(1_000), { maxLength: 5 }), (far, steps) => {
        const tokenOf = tokens.ofLane(LANE, 'public');
        const near = steps.map((step) => ({ seq: far[0]!.seq / 2n + BigInt(step), position: BigInt(step) }));
        for (const point of [...far, ...near]) {
          expect(tokens.open(tokenOf(point), 'public')).toEqual({ of: 'lane', ...LANE, point });
        }
      }),
    );
  });

  it('seals what a lane’s tokens share once, also where the log has gaps between positions', () => {
    let sealed = 0;
    const counting = createAckTokens({
      ...box,
      sealSeries(...args) {
        sealed += 1;
        return box.sealSeries(...args);
      },
    });
    const tokenOf = counting.ofLane(LANE, 'public');
    for (let seq = 1n; seq <= 1_000n; seq++) tokenOf({ seq, position: seq + 7n });
    expect(sealed).toBe(1);
    tokenOf({ seq: 1_001n, position: 1_010n });
    tokenOf({ seq: 1_002n + 2n ** 32n, position: 1_011n + 2n ** 32n });
    tokenOf({ seq: 5n, position: 5n });
    expect(sealed).toBe(4);
  });

  it('that is cut or longer is malformed', () => {
    const token = seal(EXAMPLE, 'public');
    for (let length = 0; length < token.length; length++) {
      expect(tokens.open(token.slice(0, length), 'public')).toBe('malformed');
    }
    for (const more of ['A', 'AAAA', '=', '\n', 'A'.repeat(100_000)]) {
      expect(tokens.open(token + more, 'public')).toBe('malformed');
    }
  });

  it('of another ring is malformed, and of a key that left the ring retired', () => {
    const token = seal(EXAMPLE, 'public');
    expect(createAckTokens(secretBox([{ id: 3, key: key(2) }])).open(token, 'public')).toBe('malformed');
    expect(createAckTokens(secretBox([{ id: 4, key: key(1) }])).open(token, 'public')).toBe('retired');
  });

  it('is no cursor and no continue token, and these are no ack tokens', () => {
    const cursors = createCursors(box);
    const continues = createContinueTokens(box);
    const token = seal(EXAMPLE, 'public');
    expect(() => cursors.open(token, 'public', '*')).toThrow('malformed');
    expect(() => continues.open(token, '[]')).toThrow('malformed');
    const cursor = cursors.seal(new Map([[12n, EXAMPLE.point]]), 'public', '*');
    expect(tokens.open(cursor, 'public')).toBe('malformed');
    const next = continues.seal({ after: { tenant: 'a', name: 'b' } }, '[]');
    expect(tokens.open(next, 'public')).toBe('malformed');
  });

  it('with a plaintext that no token has is malformed, though it was sealed here', () => {
    const open = (...plaintext: number[]): unknown =>
      tokens.open(box.sealSeries(Uint8Array.from(plaintext), 'plumbline/ack/1/public')(0), 'public');
    const openDeadLetter = (...plaintext: number[]): unknown =>
      tokens.open(box.seal(Uint8Array.from(plaintext), 'plumbline/ack/1/public'), 'public');
    expect(open(0, 7, 12, 15, 3, 5, 0)).toEqual({ ...EXAMPLE, point: { seq: 5n, position: 5n } });
    expect(open(0, 7, 12, 16, 3, 5, 0), 'lane 16').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5, 13), 'position -2').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5), 'no position').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5, 0, 0), 'one number more').toBe('malformed');
    expect(open(0, 7, 12, 15, 3, 5, 128), 'half a number').toBe('malformed');
    expect(openDeadLetter(1, 7, 12, 9, 2)).toEqual({ of: 'deadLetter', group: 7n, stream: 12n, id: 9n, fence: 2n });
    expect(openDeadLetter(1, 7, 12, 9), 'no fence').toBe('malformed');
    expect(openDeadLetter(1, 7, 12, 9, 2, 0), 'one number more').toBe('malformed');
    expect(openDeadLetter(2, 7, 12, 9, 2), 'of something else').toBe('malformed');
    expect(openDeadLetter(0, 7, 12, 15, 3, 5, 0), 'a lane').toBe('malformed');
    expect(open(1, 7, 12, 9, 2), 'a dead letter').toBe('malformed');
    expect(openDeadLetter(), 'nothing').toBe('malformed');
    expect(open(), 'nothing').toBe('malformed');
  });
});
