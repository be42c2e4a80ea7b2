/** Pieces of Kafka's wire format, read one behind the other. */

/** What is read must be there: it throws a RangeError at the end of the bytes. */
export class WireReader {
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Buffer, at: number = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get at(): number {
    return this.#at;
  }

  skip(count: number): void {
    this.#at += count;
  }

  int16(): number {
    const value = this.#bytes.readInt16BE(this.#at);
    this.#at += 2;
    return value;
  }

  int32(): number {
    const value = this.#bytes.readInt32BE(this.#at);
    this.#at += 4;
    return value;
  }

  int64(): bigint {
    const value = this.#bytes.readBigInt64BE(this.#at);
    this.#at += 8;
    return value;
  }

  /** Zigzag, of at most 32 bits. */
  varint(): number {
    const value = this.unsignedVarint();
    return (value >>> 1) ^ -(value & 1);
  }

  /** Of at most 32 bits. */
  unsignedVarint(): number {
    let value = 0;
    let shift = 0;
    let byte: number;
    do {
      if (this.#at >= this.#bytes.length) throw new RangeError('a number is cut off');
      byte = this.#bytes[this.#at]!;
      this.#at += 1;
      value |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    return value >>> 0;
  }

  /** A number as varint whose value does not matter, of any size. */
  skipVarint(): void {
    while (this.#bytes.readUInt8(this.#at) >= 0x80) this.#at += 1;
    this.#at += 1;
  }

  /** The next bytes, which are not copied. */
  bytes(length: number): Buffer {
    const end = this.#at + length;
    if (length < 0 || end > this.#bytes.length) throw new RangeError('bytes are cut off');
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  text(length: number): string {
    return this.bytes(length).toString();
  }

  /** As newer requests have it (KIP-482); undefined for none. */
  compactText(): string | undefined {
    const length = this.unsignedVarint() - 1;
    return length < 0 ? undefined : this.text(length);
  }

  /** As newer requests have it; none is empty. */
  compactArray<T>(item: () => T): T[] {
    const items: T[] = [];
    for (let left = this.unsignedVarint() - 1; left > 0; left -= 1) items.push(item());
    return items;
  }

  /** What a newer broker may add, and need not be understood. */
  skipTags(): void {
    for (let left = this.unsignedVarint(); left > 0; left -= 1) {
      this.unsignedVarint();
      this.skip(this.unsignedVarint());
    }
  }
}
