/**
 * Event streams on Node: frames go straight to the socket. One prepared chunk is shared by all clients that get the
 * same frames, and many frames are one write: measured, twice the frames per second of `response.write`, which makes
 * the chunk header and two more buffers for each client.
 */

import type { Socket } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { SseBytes, SseSink, SseSinkEvents, SseTransport } from '#core/ports/sse.ts';

export const socketSse: SseTransport<HttpBindings, Response> = {
  open({ outgoing }: HttpBindings, headers: Readonly<Record<string, string>>, events: SseSinkEvents) {
    outgoing.writeHead(200, headers);
    return { sink: new SocketSink(outgoing, events), answer: RESPONSE_ALREADY_SENT };
  },
};

/** A class, for its memory: an idle stream is one of thousands. */
class SocketSink implements SseSink {
  readonly #response: HttpBindings['outgoing'];
  readonly #events: SseSinkEvents;
  /** Ours to write chunks to, from the second write on. */
  #socket: Socket | undefined;
  #opened = false;

  constructor(response: HttpBindings['outgoing'], events: SseSinkEvents) {
    this.#response = response;
    this.#events = events;
    response.on('drain', () => events.onDrain());
    // The client can have left before the watch was ready: then 'close' was emitted to nobody.
    if (response.closed) queueMicrotask(() => events.onClose());
    else response.once('close', () => this.#close());
  }

  #close(): void {
    this.#socket?.off('drain', this.#events.onDrain);
    this.#events.onClose();
  }

  write(bytes: SseBytes): void {
    const response = this.#response;
    if (response.writableEnded || response.destroyed) return;
    if (this.#socket) {
      this.#socket.write(bytes.chunked);
      return;
    }
    response.write(bytes.plain);
    if (!this.#opened) this.#adoptSocket();
  }

  get bufferedBytes(): number {
    return this.#socket?.writableLength ?? this.#response.writableLength;
  }

  end(): void {
    this.#response.end();
  }

  destroy(): void {
    this.#response.destroy();
  }

  /**
   * The first write carried the headers to the socket. Not adopted: answers without chunks (HTTP/1.0, as some proxies
   * speak), and answers that still wait for an earlier one on their connection.
   */
  #adoptSocket(): void {
    this.#opened = true;
    const { socket, chunkedEncoding } = this.#response;
    if (!socket || !chunkedEncoding || this.#response.writableLength !== socket.writableLength) return;
    this.#socket = socket;
    socket.on('drain', this.#events.onDrain);
  }
}
