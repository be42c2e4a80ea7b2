/** Event streams for every runtime that answers with a `ReadableStream`: one chunk a write, pulled by the client. */

import type { SseBytes, SseSink, SseSinkEvents, SseTransport } from '#core/ports/sse.ts';

/** What a runtime may tell of a request. */
export interface StreamEnv {
  /** Aborts when the client is gone. Without it that shows only when something is sent. */
  readonly signal?: AbortSignal;
}

export const streamSse: SseTransport<StreamEnv | undefined, Response> = {
  open(env: StreamEnv | undefined, headers: Readonly<Record<string, string>>, events: SseSinkEvents) {
    const waiting: Uint8Array[] = [];
    let bufferedBytes = 0;
    let isPulled = false;
    let isEnded = false;
    let isClosed = false;
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const readable = new ReadableStream<Uint8Array>(
      {
        start(started) {
          controller = started;
        },
        pull() {
          isPulled = true;
          advance();
        },
        cancel: close,
      },
      { highWaterMark: 0 },
    );

    // The client can have left before the stream was opened: then nobody is told again.
    if (env?.signal?.aborted) close();
    else env?.signal?.addEventListener('abort', close, { once: true });

    const sink: SseSink = {
      write({ plain }: SseBytes): void {
        if (isClosed || isEnded) return;
        bufferedBytes += plain.byteLength;
        waiting.push(plain);
        advance();
      },
      get bufferedBytes(): number {
        return bufferedBytes;
      },
      end(): void {
        isEnded = true;
        advance();
      },
      destroy(): void {
        if (isClosed) return;
        controller?.error(new Error('a client that did not read was cut off; it resumes by its cursor'));
        close();
      },
    };
    return { sink, answer: new Response(readable, { headers }) };

    function advance(): void {
      if (isClosed) return;
      const bytes = waiting[0];
      if (bytes === undefined) {
        if (!isEnded) return;
        controller?.close();
        close();
      } else if (isPulled) {
        isPulled = false;
        waiting.shift();
        bufferedBytes -= bytes.byteLength;
        // The client may ask for more within this call.
        controller?.enqueue(bytes);
        if (bufferedBytes === 0) queueMicrotask(() => events.onDrain());
      }
    }

    function close(): void {
      if (isClosed) return;
      isClosed = true;
      waiting.length = 0;
      bufferedBytes = 0;
      queueMicrotask(() => events.onClose());
    }
  },
};
