/**
 * Unsigned LEB128 numbers below 2^64: seven bits a byte, lowest first. Each number has exactly one form: the shortest.
 * Numbers up to 2^53 take no bigint arithmetic, which is ten times slower.
 */

/** Appends a number. @throws {RangeError} below 0 or from 2^64 on. */
export function writeVarint(bytes: number[], value: bigint): void {
  if (value < 0n || value >= 1n << 64n) throw new RangeError(`a varint is at least 0 and below 2^64; got ${value}`);
  let rest = value;
  while (rest > Number.MAX_SAFE_INTEGER) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  let small = Number(rest);
  while (small > 127) {
    bytes.push((small % 128) | 128);
    small = Math.floor(small / 128);
  }
  bytes.push(small);
}

export interface VarintReader {
  /** The next number; undefined at the end, or when what follows is not a number in its one form. */
  next(): bigint | undefined;
  /** All bytes were read. */
  atEnd(): boolean;
}

export function createVarintReader(bytes: Uint8Array): VarintReader {
  let position = 0;
  return { next, atEnd: () => position === bytes.length };

  function next(): bigint | undefined {
    let low = 0;
    let high = 0n;
    for (let index = 0; index < 10; index++) {
      const byte = bytes[position++];
      if (byte === undefined) return undefined;
      if (index < 7) low += (byte & 127) * 2 ** (7 * index);
      else high |= BigInt(byte & 127) << BigInt(7 * index);
      if (byte < 128) return (byte === 0 && index > 0) || (index === 9 && byte > 1) ? undefined : BigInt(low) + high;
    }
    return undefined;
  }
}
