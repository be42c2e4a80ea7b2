/**
 * A connection that another object holds, as kafkajs wants its sockets: a stream of Node's. What is written before it is
 * open waits.
 */

import { Duplex } from 'node:stream';

/** The connection, as it comes from the object that holds it. */
export interface Line {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** Neither the cancelling of one nor the abortion of the other reaches that object. */
  close(): void | Promise<void>;
}

export class RelayedSocket extends Duplex {
  readonly #open: () => Promise<Line>;
  readonly #onConnect: () => void;
  #line: Line | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #writer: WritableStreamDefaultWriter<Uint8Array> | undefined;

  constructor(open: () => Promise<Line>, onConnect: () => void) {
    super({ allowHalfOpen: false });
    this.#open = open;
    this.#onConnect = onConnect;
  }

  /** Nothing holds a process here. */
  unref(): this {
    return this;
  }

  override _construct(done: (error?: Error | null) => void): void {
    this.#open().then((line) => {
      this.#line = line;
      this.#reader = line.readable.getReader();
      this.#writer = line.writable.getWriter();
      // Told by who reads and who writes.
      for (const { closed } of [this.#reader, this.#writer]) closed.catch(() => undefined);
      done();
      // It may have been given up meanwhile; then it is destroyed now.
      if (!this.destroyed) this.#onConnect();
    }, done);
  }

  override _read(): void {
    this.#reader?.read().then(
      ({ done, value }) => this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength)),
      (error: Error) => this.destroy(error),
    );
  }

  override _write(chunk: Uint8Array, _encoding: string, done: (error?: Error | null) => void): void {
    this.#writer?.write(chunk).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#writer?.close().then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    void this.#letGo().catch(() => undefined);
    done(error);
  }

  async #letGo(): Promise<void> {
    this.#reader?.cancel().catch(() => undefined);
    await this.#line?.close();
  }
}
