/**
 * Bytes from one stream into another. By hand: a socket whose streams are piped, or handed to another object, cannot be
 * closed; it stays open for as long as its peer likes.
 */

export interface Pump {
  /** Never rejects. */
  readonly ended: Promise<void>;
  /** Lets go of both streams. What was not passed on is lost. */
  stop(): void;
}

export function pump(from: ReadableStream<Uint8Array>, to: WritableStream<Uint8Array>): Pump {
  const reader = from.getReader();
  const writer = to.getWriter();
  // Told by who reads and who writes.
  for (const { closed } of [reader, writer]) closed.catch(() => undefined);
  const ended = passOn().catch(() => undefined);
  return { ended, stop };

  async function passOn(): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      await writer.write(value);
    }
  }

  function stop(): void {
    reader.cancel().catch(() => undefined);
    reader.releaseLock();
    writer.releaseLock();
  }
}
