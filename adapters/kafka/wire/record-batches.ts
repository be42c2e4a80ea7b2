/**
 * Records out of fetched batches. A batch comes whole, also when it was asked for from its middle: what lies before is
 * passed over without being looked at.
 *
 * @see https://kafka.apache.org/documentation/#recordbatch
 */

import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { crc32c } from '#adapters/kafka/wire/crc32c.ts';
import { WireReader } from '#adapters/kafka/wire/wire-reader.ts';

/** A record, of parts of the fetched bytes. */
export interface FetchedRecord {
  readonly offset: string;
  readonly value: Buffer | null;
  /** One that is there several times has all its values. */
  readonly headers: Record<string, Buffer | Buffer[]>;
}

/** The bytes are not what was written. */
export class CorruptBatch extends Error {
  override readonly name = 'CorruptBatch';
}

// Where the parts of a batch lie.
const LENGTH_AT = 8;
const LENGTH_END = 12;
const MAGIC_AT = 16;
const CRC_AT = 17;
const ATTRIBUTES_AT = 21;
const LAST_DELTA_AT = 23;
const COUNT_AT = 57;
const RECORDS_AT = 61;

const MAGIC = 2;
const CODEC_MASK = 0x07;
const CONTROL_FLAG = 0x20;
/** No batch of ours is larger than 8 MiB; a stranger's must not fill the memory. */
const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;

const CODECS: Readonly<Record<number, (bytes: Buffer) => Buffer>> = {
  0: (bytes) => bytes,
  1: (bytes) => gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }),
  4: (bytes) => zstdDecompressSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }),
};

/**
 * Shows the records from this offset on, in order, until the visitor returns false or the last whole batch ends. Records
 * that are the broker's own are not shown.
 * @param onUnreadable told of a batch that cannot be unpacked; it is left out.
 * @returns the offset to go on from: of the record that was refused, or behind the last batch.
 * @throws {CorruptBatch}
 */
export function visitRecords(
  bytes: Buffer,
  from: bigint,
  visit: (record: FetchedRecord) => boolean,
  onUnreadable: (reason: string) => void,
): bigint {
  let next = from;
  let at = 0;
  while (bytes.length - at >= RECORDS_AT) {
    const end = at + LENGTH_END + bytes.readInt32BE(at + LENGTH_AT);
    if (end > bytes.length) break;
    const batch = bytes.subarray(at, end);
    const base = batch.readBigInt64BE(0);
    assertSound(batch, base);
    const behind = base + BigInt(batch.readInt32BE(LAST_DELTA_AT)) + 1n;
    if (behind > next) {
      const stoppedAt = visitBatch(batch, base, Number(next - base), visit, onUnreadable);
      if (stoppedAt !== undefined) return base + BigInt(stoppedAt);
      next = behind;
    }
    at = end;
  }
  return next;
}

/** @returns the distance of the refused record from the batch's first offset. */
function visitBatch(
  batch: Buffer,
  base: bigint,
  fromDelta: number,
  visit: (record: FetchedRecord) => boolean,
  onUnreadable: (reason: string) => void,
): number | undefined {
  if (batch[MAGIC_AT] !== MAGIC) {
    onUnreadable(`of format ${batch[MAGIC_AT]}`);
    return undefined;
  }
  const attributes = batch.readInt16BE(ATTRIBUTES_AT);
  if (attributes & CONTROL_FLAG) return undefined;
  const records = unpack(batch.subarray(RECORDS_AT), attributes & CODEC_MASK, onUnreadable);
  if (!records) return undefined;
  const reader = new WireReader(records);
  for (let left = batch.readInt32BE(COUNT_AT); left > 0; left -= 1) {
    const length = reader.varint();
    const end = reader.at + length;
    reader.skip(1);
    // Its time, which we do not use.
    reader.skipVarint();
    const delta = reader.varint();
    if (delta >= fromDelta && !visit(recordAt(String(base + BigInt(delta)), reader))) return delta;
    reader.skip(end - reader.at);
  }
  return undefined;
}

function assertSound(batch: Buffer, base: bigint): void {
  if (crc32c(batch, ATTRIBUTES_AT, batch.length) === batch.readUInt32BE(CRC_AT)) return;
  throw new CorruptBatch(`the checksum of the batch at offset ${base} is wrong`);
}

function unpack(bytes: Buffer, codec: number, onUnreadable: (reason: string) => void): Buffer | undefined {
  const decompress = CODECS[codec];
  if (!decompress) {
    onUnreadable(`compressed by snappy or lz4; set the topic's compression.type to producer, gzip or zstd`);
    return undefined;
  }
  try {
    return decompress(bytes);
  } catch (error) {
    onUnreadable(`that cannot be unpacked: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

function recordAt(offset: string, reader: WireReader): FetchedRecord {
  // The key: it is the event's uid, which is among the headers.
  reader.skip(Math.max(reader.varint(), 0));
  const valueLength = reader.varint();
  const value = valueLength < 0 ? null : reader.bytes(valueLength);
  // Any name may come, also those that objects have.
  const headers = Object.create(null) as Record<string, Buffer | Buffer[]>;
  for (let left = reader.varint(); left > 0; left -= 1) {
    const name = reader.text(reader.varint());
    const length = reader.varint();
    // Null is none.
    if (length >= 0) addHeader(headers, name, reader.bytes(length));
  }
  return { offset, value, headers };
}

function addHeader(headers: Record<string, Buffer | Buffer[]>, name: string, value: Buffer): void {
  const known = headers[name];
  headers[name] = known === undefined ? value : [known, value].flat();
}
