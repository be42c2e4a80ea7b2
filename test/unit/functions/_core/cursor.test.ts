import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { secretBox } from '#adapters/ciphers/secret-box.ts';
import {
  createCursors,
  cursorScope,
  type CursorVector,
  decodeVector,
  encodeVector,
  MAX_CURSOR_CHARACTERS,
  MAX_CURSOR_STREAMS,
} from '#core/cursor.ts';
import { StatusError } from '#core/status-error.ts';

const MAX = 2n ** 63n - 1n;
const count = fc.oneof(fc.bigInt({ min: 0n, max: MAX }), fc.nat().map(BigInt));
const streamId = fc.oneof(fc.bigInt({ min: 1n, max: MAX }), fc.integer({ min: 1, max: 300 }).map(BigInt));
const vectors: fc.Arbitrary<CursorVector> = fc
  .uniqueArray(fc.tuple(streamId, fc.record({ seq: count, position: count })), {
    selector: ([id]) => id,
    maxLength: 40,
  })
  .map((entries) => new Map(entries));

describe('the form of a vector in bytes', () => {
  it('is read back as the same vector', () => {
    fc.assert(
      fc.property(vectors, (vector) => {
        expect(decodeVector(encodeVector(vector))).toEqual(vector);
      }),
    );
  });

  it('does not depend on the order in which streams were added', () => {
    fc.assert(
      fc.property(vectors, (vector) => {
        expect(encodeVector(new Map([...vector].toReversed()))).toEqual(encodeVector(vector));
      }),
    );
  });

  it('is the only one: what can be read is what would be written', () => {
    const bytes = fc.array(fc.oneof(fc.nat(255), fc.nat(3)), { maxLength: 24 }).map((array) => Uint8Array.from(array));
    fc.assert(
      fc.property(bytes, (bytes) => {
        const vector = decodeVector(bytes);
        if (vector) expect(encodeVector(vector)).toEqual(bytes);
      }),
      { numRuns: 5000 },
    );
  });

  it('is three small numbers for a stream', () => {
    expect([...encodeVector(new Map([[3n, { seq: 5n, position: 4n }]]))]).toEqual([2, 5, 1]);
    expect([
      ...encodeVector(
        new Map([
          [3n, { seq: 5n, position: 5n }],
          [4n, { seq: 0n, position: 0n }],
        ]),
      ),
    ]).toEqual([2, 5, 0, 0, 0, 0]);
  });

  it('cannot end inside a point, nor have bytes behind the last one', () => {
    const bytes = encodeVector(new Map([[300n, { seq: 1000n, position: 5n }]]));
    for (let length = 1; length < bytes.length; length++) expect(decodeVector(bytes.slice(0, length))).toBeUndefined();
    expect(decodeVector(Uint8Array.of(...bytes, 0))).toBeUndefined();
  });

  it('has no numbers that no log has', () => {
    const ok = { seq: 0n, position: 0n };
    expect(() => encodeVector(new Map([[0n, ok]]))).toThrow(RangeError);
    expect(() => encodeVector(new Map([[MAX + 1n, ok]]))).toThrow(RangeError);
    expect(() => encodeVector(new Map([[1n, { seq: -1n, position: 0n }]]))).toThrow(RangeError);
    expect(() => encodeVector(new Map([[1n, { seq: 0n, position: MAX + 1n }]]))).toThrow(RangeError);
    expect(decodeVector(Uint8Array.of(0, 0, 1)), 'position -1').toBeUndefined();
    const beyond = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    expect(decodeVector(Uint8Array.of(...beyond, 0, 0)), 'id 2^64').toBeUndefined();
    expect(decodeVector(Uint8Array.of(0, ...beyond, 0)), 'seq 2^64 - 1').toBeUndefined();
  });

  it('holds 256 streams and not one more', () => {
    expect(decodeVector(encodeVector(vectorOf(MAX_CURSOR_STREAMS)))?.size).toBe(256);
    expect(() => encodeVector(vectorOf(MAX_CURSOR_STREAMS + 1))).toThrow(RangeError);
    const bytes = encodeVector(vectorOf(MAX_CURSOR_STREAMS));
    expect(decodeVector(Uint8Array.of(...bytes, 0, 0, 0))).toBeUndefined();
  });
});

describe('cursorScope', () => {
  it('is the same for the same tenants in any order', () => {
    expect(cursorScope('public', ['b', 'a', 'b'])).toBe(cursorScope('public', ['a', 'b']));
  });

  it('differs for anything else', () => {
    const scopes = [
      cursorScope('public', '*'),
      cursorScope('private', '*'),
      cursorScope('public', ['*']),
      cursorScope('public', []),
      cursorScope('public', ['a']),
      cursorScope('public', ['a', 'b']),
      cursorScope('public', ['a,b']),
      cursorScope('public', ['a","b']),
    ];
    expect(new Set(scopes).size).toBe(scopes.length);
  });
});

describe('cursors', () => {
  const cursors = createCursors(secretBox([{ id: 1, key: new Uint8Array(32).fill(1) }]));
  const vector: CursorVector = new Map([[7n, { seq: 123456n, position: 123455n }]]);

  it('open to the vector that was sealed', () => {
    fc.assert(
      fc.property(vectors, fc.constantFrom('public', 'private'), (vector, audience) => {
        expect(cursors.open(cursors.seal(vector, audience, ['a', 'b']), audience, ['b', 'a'])).toEqual(vector);
        expect(cursors.open(cursors.seal(vector, audience, '*'), audience, '*')).toEqual(vector);
      }),
    );
  });

  it('answer everything else with one and the same 400', () => {
    const cursor = cursors.seal(vector, 'public', ['acme']);
    const stranger = createCursors(secretBox([{ id: 1, key: new Uint8Array(32).fill(2) }]));
    const refusals = [
      refusal(() => cursors.open('', 'public', ['acme'])),
      refusal(() => cursors.open('4711', 'public', ['acme'])),
      refusal(() => cursors.open(`${cursor}A`, 'public', ['acme'])),
      refusal(() => cursors.open(cursor.slice(0, -1), 'public', ['acme'])),
      refusal(() => cursors.open(cursor, 'private', ['acme'])),
      refusal(() => cursors.open(cursor, 'public', ['globex'])),
      refusal(() => cursors.open(cursor, 'public', ['acme', 'globex'])),
      refusal(() => cursors.open(cursor, 'public', '*')),
      refusal(() => stranger.open(cursor, 'public', ['acme'])),
    ];
    for (const error of refusals) expect(error.toBody()).toEqual(refusals[0]!.toBody());
    expect(refusals[0]).toMatchObject({
      code: 400,
      message: expect.stringMatching(/^cursor is malformed .*the audience and the same tenants/),
    });
  });

  it.each([MAX_CURSOR_CHARACTERS + 1, 10_000_000])(
    'are refused for their length before they are read: %i characters',
    (length) => {
      const { message } = refusal(() => cursors.open('A'.repeat(length), 'public', ['acme']));
      expect(message).toContain(`cursor has ${length} characters, and none has more than ${MAX_CURSOR_CHARACTERS}`);
    },
  );

  it('never open when one character was changed', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= ';
    const cursor = cursors.seal(vector, 'public', '*');
    fc.assert(
      fc.property(fc.nat(cursor.length - 1), fc.constantFrom(...alphabet.split('')), (index, character) => {
        fc.pre(cursor[index] !== character);
        const mutated = cursor.slice(0, index) + character + cursor.slice(index + 1);
        expect(['BadRequest', 'CursorKeyRetired']).toContain(
          refusal(() => cursors.open(mutated, 'public', '*')).reason,
        );
      }),
      { numRuns: 500 },
    );
  });

  it('throw nothing but a StatusError, whatever the text', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), fc.stringMatching(/^[\w-]{38,80}$/));
    fc.assert(
      fc.property(text, (text) => {
        expect(refusal(() => cursors.open(text, 'public', '*'))).toBeInstanceOf(StatusError);
      }),
    );
  });

  it('do not open as another kind of token', () => {
    const box = secretBox([{ id: 1, key: new Uint8Array(32).fill(1) }]);
    expect(
      refusal(() => cursors.open(box.seal(encodeVector(vector), 'plumbline/continue/1/'), 'public', '*')).code,
    ).toBe(400);
  });

  it('are gone, with what to do, when their key left the ring', () => {
    const cursor = cursors.seal(vector, 'public', '*');
    const rotated = createCursors(secretBox([{ id: 2, key: new Uint8Array(32).fill(3) }]));
    expect(refusal(() => rotated.open(cursor, 'public', '*'))).toMatchObject({
      reason: 'CursorKeyRetired',
      code: 410,
      message: expect.stringContaining('list again'),
    });
  });

  it('hold 256 tenants, and refuse more with the advice to watch fewer', () => {
    const cursor = cursors.seal(vectorOf(256), 'public', '*');
    expect(cursor.length).toBeLessThanOrEqual(MAX_CURSOR_CHARACTERS);
    expect(cursors.open(cursor, 'public', '*').size).toBe(256);
    expect(refusal(() => cursors.seal(vectorOf(257), 'public', '*'))).toMatchObject({
      code: 400,
      message: expect.stringMatching(/257 tenants is too large.*watch fewer tenants/),
    });
  });

  it('have 4,096 characters at most: one byte more is refused', () => {
    const wide = Array.from({ length: 152 }, (_, index) => [BigInt(index + 1), { seq: MAX, position: 0n }] as const);
    const full = new Map([...wide, [153n, { seq: 0n, position: 0n }]]);
    const larger = new Map([...wide, [153n, { seq: 128n, position: 128n }]]);
    expect([encodeVector(full).length, encodeVector(larger).length]).toEqual([3043, 3044]);
    const cursor = cursors.seal(full, 'public', '*');
    expect(cursor.length).toBe(MAX_CURSOR_CHARACTERS);
    expect(cursors.open(cursor, 'public', '*')).toEqual(full);
    expect(refusal(() => cursors.seal(larger, 'public', '*'))).toMatchObject({
      code: 400,
      message: expect.stringMatching(/153 tenants is too large: .* 4096 characters at most/),
    });
    expect(refusal(() => cursors.open(`${cursor}A`, 'public', '*')).code).toBe(400);
  });

  it('refuse vectors whose text would be too long, also below 256 tenants', () => {
    const far = new Map(
      Array.from({ length: 200 }, (_, index) => [BigInt(index + 1) * 2n ** 50n, { seq: MAX, position: 0n }]),
    );
    expect(refusal(() => cursors.seal(far, 'public', '*'))).toMatchObject({
      code: 400,
      message: expect.stringContaining('watch fewer tenants'),
    });
  });
});

function vectorOf(streams: number): CursorVector {
  const entries = Array.from({ length: streams }, (_, index) => {
    const seq = 1_000_000_000n + BigInt(index);
    return [BigInt(1 + index * 50), { seq, position: seq - 1n }] as const;
  });
  return new Map(entries);
}

function refusal(action: () => unknown): StatusError {
  try {
    action();
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
