/**
 * Cursors: where a watcher is, in every stream that it watches. Clients hold them as opaque text. A cursor opens only
 * for the audience and the tenants that it was sealed for, so it tells nobody anything and moves nobody's position.
 *
 * Plaintext, for each stream in the order of ids: the id as its distance from the one before, the seq, and the position
 * as its signed distance from the seq (in both logs a small number). About 8 bytes a stream.
 */

import { type Audience, canonicalTenants, type TenantSet } from '#core/identity.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { SecretBox } from '#core/ports/secret-box.ts';
import { StatusError } from '#core/status-error.ts';
import { createVarintReader, writeVarint } from '#core/varint.ts';

/** A point in each stream, by stream id. Everything up to the points is processed. */
export type CursorVector = ReadonlyMap<bigint, LogPoint>;

export const MAX_CURSOR_STREAMS: number = 256;
/** Proxies and servers limit a request's line and headers to 8 KiB; a cursor leaves half of that. */
export const MAX_CURSOR_CHARACTERS: number = 4096;

/** Part of what a cursor is bound to: cursors of another format are malformed. */
const FORMAT_VERSION = 1;
const MAX_BIGINT = 2n ** 63n - 1n;

/**
 * The one form of a vector in bytes.
 * @throws {RangeError} for more than MAX_CURSOR_STREAMS streams, and for numbers that no log has.
 */
export function encodeVector(vector: CursorVector): Uint8Array {
  if (vector.size > MAX_CURSOR_STREAMS) throw new RangeError(`a vector of ${vector.size} streams is too large`);
  const bytes: number[] = [];
  let previous = 0n;
  for (const [stream, { seq, position }] of [...vector].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!isStream(stream) || !isCount(seq) || !isCount(position)) {
      throw new RangeError(`no point of a log: stream ${stream}, seq ${seq}, position ${position}`);
    }
    const distance = position - seq;
    writeVarint(bytes, stream - previous - 1n);
    writeVarint(bytes, seq);
    writeVarint(bytes, distance < 0n ? -2n * distance - 1n : 2n * distance);
    previous = stream;
  }
  return Uint8Array.from(bytes);
}

/** The vector; undefined for bytes that `encodeVector` does not make. */
export function decodeVector(bytes: Uint8Array): CursorVector | undefined {
  const reader = createVarintReader(bytes);
  const vector = new Map<bigint, LogPoint>();
  let previous = 0n;
  while (!reader.atEnd()) {
    const gap = reader.next();
    const seq = reader.next();
    const zigzag = reader.next();
    if (gap === undefined || seq === undefined || zigzag === undefined) return undefined;
    const stream = previous + gap + 1n;
    const position = seq + (zigzag % 2n === 0n ? zigzag / 2n : -(zigzag + 1n) / 2n);
    if (!isStream(stream) || !isCount(seq) || !isCount(position)) return undefined;
    if (vector.size === MAX_CURSOR_STREAMS) return undefined;
    vector.set(stream, { seq, position });
    previous = stream;
  }
  return vector;
}

/** What a cursor is bound to, as text: equal for the same audience and the same set of tenants, in any order. */
export function cursorScope(audience: Audience, tenants: TenantSet): string {
  return `plumbline/cursor/${FORMAT_VERSION}/${audience}/${JSON.stringify(canonicalTenants(tenants))}`;
}

export interface Cursors {
  /**
   * The cursor's text. The same vector gives another text each time.
   * @throws {StatusError} BadRequest when it would be larger than a cursor may be.
   */
  seal(vector: CursorVector, audience: Audience, tenants: TenantSet): string;

  /**
   * The points of a cursor that was sealed for this audience and these tenants.
   * @throws {StatusError} CursorKeyRetired; BadRequest for all else, telling of what is wrong about it its length alone.
   */
  open(cursor: string, audience: Audience, tenants: TenantSet): CursorVector;
}

export function createCursors(box: SecretBox): Cursors {
  return { seal, open };

  function seal(vector: CursorVector, audience: Audience, tenants: TenantSet): string {
    if (vector.size > MAX_CURSOR_STREAMS) throw tooLarge(vector.size);
    const cursor = box.seal(encodeVector(vector), cursorScope(audience, tenants));
    if (cursor.length > MAX_CURSOR_CHARACTERS) throw tooLarge(vector.size);
    return cursor;
  }

  function open(cursor: string, audience: Audience, tenants: TenantSet): CursorVector {
    if (cursor.length > MAX_CURSOR_CHARACTERS) throw tooLong(cursor.length);
    const opened = box.open(cursor, cursorScope(audience, tenants));
    if (opened === 'retired') throw retired();
    const vector = opened === 'malformed' ? undefined : decodeVector(opened);
    if (!vector) throw malformed();
    return vector;
  }
}

function isStream(id: bigint): boolean {
  return id >= 1n && id <= MAX_BIGINT;
}

function isCount(value: bigint): boolean {
  return value >= 0n && value <= MAX_BIGINT;
}

function tooLarge(streams: number): StatusError {
  return new StatusError(
    'BadRequest',
    `a cursor over ${streams} tenants is too large: it holds ${MAX_CURSOR_STREAMS} tenants and ` +
      `${MAX_CURSOR_CHARACTERS} characters at most; watch fewer tenants at once by naming them in "tenants", or as a group`,
  );
}

function tooLong(characters: number): StatusError {
  return new StatusError(
    'BadRequest',
    `cursor has ${characters} characters, and none has more than ${MAX_CURSOR_CHARACTERS}; send it as it was received`,
  );
}

function malformed(): StatusError {
  return new StatusError(
    'BadRequest',
    'cursor is malformed or belongs to another request: a cursor only fits the audience and the same tenants as the ' +
      'request that gave it; send it as it was received, or list again and watch from the cursor of that list',
  );
}

function retired(): StatusError {
  return new StatusError(
    'CursorKeyRetired',
    'the key of this cursor was retired: list again and watch from the cursor of that list',
  );
}
