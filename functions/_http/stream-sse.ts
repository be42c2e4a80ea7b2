/** Event streams for every runtime that answers with a `ReadableStream`: one chunk a write, pulled by the client. */

import type { SseBytes, SseSink, SseSinkEvents, SseTransport } from '#core/ports/sse.ts';

export const streamSse: SseTransport<unknown, Response> = {
  open(_env: unknown, headers: Readonly<Record<string, string>>, events: SseSinkEvents) {
    let bufferedBytes = 0;
    let closed = false;
    const waiting: Uint8Array[] = [];
    const readable = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          const bytes = waiting.shift();
          if (bytes) send(controller, bytes);
          else wake = () => pullNext(controller);
        },
        cancel: close,
      },
      { highWaterMark: 0 },
    );
    let wake: (() => void) | undefined;
    let ended = false;

    const sink: SseSink = {
      write(bytes: SseBytes): void {
        if (closed || ended) return;
        bufferedBytes += bytes.plain.byteLength;
        waiting.push(bytes.plain);
        resume();
      },
      get bufferedBytes(): number {
        return bufferedBytes;
      },
      end(): void {
        ended = true;
        resume();
      },
      destroy(): void {
        waiting.length = 0;
        ended = true;
        resume();
      },
    };
    return { sink, answer: new Response(readable, { headers }) };

    function resume(): void {
      const run = wake;
      wake = undefined;
      run?.();
    }

    function pullNext(controller: ReadableStreamDefaultController<Uint8Array>): void {
      const bytes = waiting.shift();
      if (bytes) return send(controller, bytes);
      if (!ended) return;
      controller.close();
      close();
    }

    function send(controller: ReadableStreamDefaultController<Uint8Array>, bytes: Uint8Array): void {
      controller.enqueue(bytes);
      bufferedBytes -= bytes.byteLength;
      if (bufferedBytes === 0) queueMicrotask(() => events.onDrain());
    }

    function close(): void {
      if (closed) return;
      closed = true;
      events.onClose();
    }
  },
};
