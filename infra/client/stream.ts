/** A stream that is opened again whenever it ends, for as long as that may help. */

import { pause } from '#loop/pause.ts';
import { createBackoff, type RetryOptions } from '#infra/client/backoff.ts';
import { type Answer, type Caller, parseJson } from '#infra/client/caller.ts';
import {
  ConnectionError,
  isRetried,
  isStatus,
  ProtocolError,
  StatusError,
  statusErrorOf,
  Unauthorized,
} from '#infra/client/errors.ts';
import { readSse } from '#infra/client/sse-stream.ts';

export type Mode = 'live' | 'resume' | 'initial' | 'group';

const PROTOCOL = 1;

export interface StreamOptions {
  /**
   * How often the server is sure to send something. A connection that is silent for three times as long is dead.
   * @default 15,000
   */
  readonly heartbeatMs?: number;
  readonly retry?: RetryOptions;
  /** Each time that the stream ended, or could not be opened, and will be tried again after this time. */
  readonly onRetry?: (why: ConnectionError | StatusError, delayMs: number) => void;
}

/** One event of the stream. */
export interface Frame {
  readonly type: string;
  /** Undefined when it has none of its own. */
  readonly id: string | undefined;
  readonly data: unknown;
}

export interface StreamRequest extends StreamOptions {
  readonly caller: Caller;
  /** Asked at each connect. */
  readonly request: () => { readonly path: string; readonly mode: Mode };
  /** A connection that had begun has ended. */
  readonly onEnd?: () => void;
  readonly signal: AbortSignal;
}

/**
 * All frames of all connections, each beginning with its READY. Ends when the signal aborts.
 * @throws {ProtocolError} @throws {StatusError} what is not tried again.
 */
export async function* openAgain(options: StreamRequest): AsyncGenerator<Frame, void, undefined> {
  const { caller, request, onEnd, signal, heartbeatMs = 15_000, onRetry } = options;
  const backoff = createBackoff(options.retry);
  let retryMs = 0;
  while (!signal.aborted) {
    let openedAtMs: number | undefined;
    let answer: Answer | undefined;
    let why: ConnectionError | StatusError;
    try {
      const { path, mode } = request();
      const sse = {
        signal,
        silenceMs: 3 * heartbeatMs,
        onAnswer: (got: Answer) => void (answer = got),
        onRetry: (asked: number) => void (retryMs = asked),
      };
      for await (const { event = 'message', id, data } of readSse(caller, path, sse)) {
        const frame: Frame = { type: event, id, data: parseJson(data) };
        if (frame.type === 'ERROR') throw errorOf(frame);
        if (openedAtMs === undefined) assertReady(frame, mode);
        openedAtMs ??= performance.now();
        yield frame;
      }
      why = new ConnectionError('the server ended the stream');
    } catch (error) {
      if (signal.aborted) return;
      // With its expiry a token ends a stream; whether another is to be had, the next call tells.
      const isExpiry = error instanceof Unauthorized && openedAtMs !== undefined;
      if (isExpiry) answer?.refuseToken();
      if (!isExpiry && !isRetried(error)) throw error;
      why = error;
    } finally {
      if (openedAtMs !== undefined) onEnd?.();
    }
    if (signal.aborted) return;
    if (openedAtMs !== undefined) backoff.lived(performance.now() - openedAtMs);
    const delayMs = backoff.next(why instanceof StatusError ? why.retryAfterMs : 0, retryMs);
    onRetry?.(why, delayMs);
    await pause(delayMs, signal);
  }
}

function errorOf({ data }: Frame): StatusError | ProtocolError {
  return isStatus(data) ? statusErrorOf(data) : new ProtocolError('the stream ended with an ERROR that has no Status');
}

/**
 * The first event says what was granted: a server that has not understood the request does not say it.
 * @throws {ProtocolError} when what was asked for is not what READY grants.
 */
function assertReady(frame: Frame, asked: Mode): void {
  const granted = frame.type === 'READY' && typeof frame.data === 'object' ? frame.data : undefined;
  if (!granted) {
    throw new ProtocolError(
      `the stream begins with ${frame.type} instead of READY: this is no Plumbline, or an older one`,
    );
  }
  const protocol = 'protocol' in granted ? granted.protocol : undefined;
  if (protocol !== PROTOCOL) {
    throw new ProtocolError(`the server speaks protocol ${JSON.stringify(protocol)}, and this client ${PROTOCOL}`);
  }
  const mode = 'mode' in granted ? granted.mode : undefined;
  if (mode === asked) return;
  throw new ProtocolError(
    `asked for mode ${asked}, the server grants ${JSON.stringify(mode)}: going on would lose or repeat events`,
  );
}
