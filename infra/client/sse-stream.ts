/** One connection of server-sent events, read at the pace of whoever takes them. */

import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { type Answer, type Caller, messageOf } from '#infra/client/caller.ts';
import { ConnectionError, ProtocolError } from '#infra/client/errors.ts';
import { linkSignal } from '#infra/client/linked-signal.ts';

export interface SseOptions {
  readonly signal: AbortSignal;
  /** A connection on which nothing comes for this long is dead. While nobody takes events, none is expected. */
  readonly silenceMs: number;
  readonly onAnswer: (answer: Answer) => void;
  /** The server's `retry:`, in milliseconds. */
  readonly onRetry: (milliseconds: number) => void;
}

/**
 * The events until the server ends the stream. Whoever stops taking them closes it.
 * @throws {ConnectionError} it broke. @throws {StatusError} what `Caller.send` throws. @throws {ProtocolError} the answer
 * is no event stream. @throws the signal's reason.
 */
export async function* readSse(
  caller: Caller,
  path: string,
  { signal, silenceMs, onAnswer, onRetry }: SseOptions,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  const connection = linkSignal(signal);
  let silence = listen();
  try {
    const answer = await caller.send(path, { headers: { Accept: 'text/event-stream' }, signal: connection.signal });
    onAnswer(answer);
    const reader = bodyOf(answer.response).getReader();
    const decoder = new TextDecoder();
    const messages: EventSourceMessage[] = [];
    const parser = createParser({ onEvent: (message) => void messages.push(message), onRetry });
    for (;;) {
      const { done, value } = await reader.read();
      clearTimeout(silence);
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* messages.splice(0);
      silence = listen();
    }
  } catch (error) {
    if (connection.signal.aborted) throw connection.signal.reason;
    // What fetch throws is a TypeError, whatever happened.
    if (!(error instanceof TypeError)) throw error;
    throw new ConnectionError(`the connection broke: ${messageOf(error)}`, { cause: error });
  } finally {
    clearTimeout(silence);
    connection.release();
    connection.abort();
  }

  function listen(): ReturnType<typeof setTimeout> {
    const dead = new ConnectionError(`nothing came for ${silenceMs} ms`);
    return setTimeout(() => connection.abort(dead), silenceMs);
  }
}

function bodyOf(response: Response): ReadableStream<Uint8Array<ArrayBuffer>> {
  const type = response.headers.get('content-type') ?? 'nothing';
  if (response.body && type.startsWith('text/event-stream')) return response.body;
  throw new ProtocolError(`${response.url.replace(/\?.*/, '')} is no watch: it answers with ${type}`);
}
