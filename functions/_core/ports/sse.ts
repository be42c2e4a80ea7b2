/** PORT. One client's event stream, as the watch function writes it. */

/** Frames that are ready to be sent, encoded once however many clients get them. */
export interface SseBytes {
  /** The frames in UTF-8. */
  readonly plain: Uint8Array;
  /** The same as one chunk of HTTP/1.1's chunked coding (RFC 9112 section 7.1). */
  readonly chunked: Uint8Array;
}

export interface SseSink {
  /** Takes the bytes, whatever is buffered already; whoever writes watches `bufferedBytes`. Does nothing when closed. */
  write(bytes: SseBytes): void;
  /** Bytes that were taken and that the network did not take yet. */
  readonly bufferedBytes: number;
  /** Ends the stream behind what was written. */
  end(): void;
  /** Breaks the connection, with whatever was not sent. */
  destroy(): void;
}

export interface SseSinkEvents {
  /** The network took everything. */
  onDrain(): void;
  /** The connection is gone, whoever ended it. Called once. */
  onClose(): void;
}

/** Opens the stream of one request: `Env` is what the runtime gives a handler, `Answer` what the handler returns. */
export interface SseTransport<Env, Answer> {
  open(
    env: Env,
    headers: Readonly<Record<string, string>>,
    events: SseSinkEvents,
  ): { readonly sink: SseSink; readonly answer: Answer };
}
