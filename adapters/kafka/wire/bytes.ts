/** Pieces of Kafka's wire format, written in their place. Each returns where the next one begins. */

/** Shorter texts are quicker written here, unit by unit, than by a call into Node. */
const SHORT_TEXT = 48;

/** Bytes of a signed number as a zigzag varint, of at most 32 bits. */
export function varintSize(value: number): number {
  const zigzag = ((value << 1) ^ (value >> 31)) >>> 0;
  if (zigzag < 0x80) return 1;
  if (zigzag < 0x4000) return 2;
  if (zigzag < 0x20_0000) return 3;
  return zigzag < 0x1000_0000 ? 4 : 5;
}

export function writeVarint(bytes: Buffer, at: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  let next = at;
  for (; rest >= 0x80; rest >>>= 7) {
    bytes[next] = (rest & 0x7f) | 0x80;
    next += 1;
  }
  bytes[next] = rest;
  return next + 1;
}

/** @param length of the text as UTF-8 */
export function writeText(bytes: Buffer, at: number, text: string, length: number): number {
  // As many bytes as units: then it is ASCII.
  if (length === text.length && length < SHORT_TEXT) {
    for (let index = 0; index < length; index += 1) bytes[at + index] = text.charCodeAt(index);
  } else if (length === text.length) {
    bytes.write(text, at, length, 'latin1');
  } else {
    bytes.write(text, at, length, 'utf8');
  }
  return at + length;
}

/** A string with its length in 16 bits before it. */
export function writeString(bytes: Buffer, at: number, text: string | null): number {
  if (text === null) return bytes.writeInt16BE(-1, at);
  const length = Buffer.byteLength(text);
  return writeText(bytes, bytes.writeInt16BE(length, at), text, length);
}

export function stringSize(text: string | null): number {
  return 2 + (text === null ? 0 : Buffer.byteLength(text));
}
