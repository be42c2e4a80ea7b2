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

  override _construct(done: Done): void {
    void this.#begin(done);
  }

  override _read(): void {
    void this.#receive();
  }

  override _write(chunk: Uint8Array, _encoding: string, done: Done): void {
    void tell(this.#writer?.write(chunk), done);
  }

  override _final(done: Done): void {
    void tell(this.#writer?.close(), done);
  }

  override _destroy(error: Error | null, done: Done): void {
    void this.#letGo();
    done(error);
  }

  /** It may have been given up meanwhile: then `done` destroys it. */
  async #begin(done: Done): Promise<void> {
    const isOpen = await tell(this.#connect(), done);
    if (isOpen && !this.destroyed) this.#onConnect();
  }

  async #connect(): Promise<void> {
    this.#line = await this.#open();
    this.#reader = this.#line.readable.getReader();
    this.#writer = this.#line.writable.getWriter();
    // Told by who reads and who writes.
    for (const { closed } of [this.#reader, this.#writer]) closed.catch(() => undefined);
  }

  async #receive(): Promise<void> {
    try {
      const got = await this.#reader?.read();
      this.push(got?.value ? Buffer.from(got.value.buffer, got.value.byteOffset, got.value.byteLength) : null);
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  async #letGo(): Promise<void> {
    try {
      this.#reader?.cancel().catch(() => undefined);
      await this.#line?.close();
    } catch {
      // With the object that held it, the connection is gone.
    }
  }
}

type Done = (error?: Error | null) => void;

/** Whether it went well. */
async function tell(work: Promise<void> | undefined, done: Done): Promise<boolean> {
  try {
    await work;
  } catch (error) {
    done(error as Error);
    return false;
  }
  done();
  return true;
}
