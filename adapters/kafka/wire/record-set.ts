/**
 * The records of a batch, in one exact buffer: all is measured first, then written in its place. kafkajs makes a buffer of
 * 512 bytes for each header and each record, fills it and copies it; that is where a producer of its spends its time.
 *
 * @see https://kafka.apache.org/documentation/#record
 */

import { varintSize, writeText, writeVarint } from '#adapters/kafka/wire/bytes.ts';

/** A record that is text in all its parts, with the batch's time. */
export interface TextRecord {
  readonly key?: string | null;
  readonly value: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Attributes and the distance to the batch's time, a byte each: both are 0. */
const FIXED_SIZE = 2;
const NO_HEADERS: Readonly<Record<string, string>> = {};

export interface RecordSet {
  readonly size: number;
  /** Returns where it ends. */
  write(bytes: Buffer, at: number): number;
}

export function recordSet(records: readonly TextRecord[]): RecordSet {
  // Of each text in turn, so that it is measured once; before those of a record, its own.
  const lengths: number[] = [];
  let size = 0;
  for (const [index, record] of records.entries()) size += measure(record, index, lengths);
  return { size, write };

  function write(bytes: Buffer, start: number): number {
    let next = 0;
    let at = start;
    for (const [index, { key = null, value, headers = NO_HEADERS }] of records.entries()) {
      at = writeVarint(bytes, at, lengths[next++]!);
      bytes[at] = 0;
      bytes[at + 1] = 0;
      at = writeVarint(bytes, at + FIXED_SIZE, index);
      at = writeSized(bytes, at, key, lengths[next++]!);
      at = writeSized(bytes, at, value, lengths[next++]!);
      const names = Object.keys(headers);
      at = writeVarint(bytes, at, names.length);
      for (const name of names) {
        at = writeSized(bytes, at, name, lengths[next++]!);
        at = writeSized(bytes, at, headers[name]!, lengths[next++]!);
      }
    }
    return at;
  }
}

/** The size of a record with its length before it. */
function measure({ key = null, value, headers = NO_HEADERS }: TextRecord, index: number, lengths: number[]): number {
  const own = lengths.push(0) - 1;
  const names = Object.keys(headers);
  let size = FIXED_SIZE + varintSize(index) + measureText(key, lengths) + measureText(value, lengths);
  size += varintSize(names.length);
  for (const name of names) size += measureText(name, lengths) + measureText(headers[name]!, lengths);
  lengths[own] = size;
  return varintSize(size) + size;
}

function measureText(text: string | null, lengths: number[]): number {
  const length = text === null ? -1 : Buffer.byteLength(text);
  lengths.push(length);
  return varintSize(length) + Math.max(length, 0);
}

/** A text with its length before it; -1 for none. */
function writeSized(bytes: Buffer, at: number, text: string | null, length: number): number {
  const next = writeVarint(bytes, at, length);
  return text === null ? next : writeText(bytes, next, text, length);
}
