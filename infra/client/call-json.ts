/** Calls that are answered with one document. */

import { type Caller, messageOf } from '#infra/client/caller.ts';
import { ConnectionError } from '#infra/client/errors.ts';
import { linkSignal } from '#infra/client/linked-signal.ts';

export interface JsonCallOptions {
  /** Makes it a POST. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** For the whole answer. */
  readonly timeoutMs: number;
}

/**
 * What the answer holds, and its head.
 * @throws what `Caller.send` throws; {ConnectionError} for an answer that does not come in time, or is cut.
 */
export async function callJson(
  caller: Caller,
  path: string,
  { body, signal, timeoutMs }: JsonCallOptions,
): Promise<{ readonly answer: unknown; readonly headers: Headers }> {
  const link = linkSignal(signal);
  const late = new ConnectionError(`there is no answer after ${timeoutMs} ms`);
  const timer = setTimeout(() => link.abort(late), timeoutMs);
  try {
    const { response } = await caller.send(path, {
      headers: { Accept: 'application/json', ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      signal: link.signal,
    });
    const text = await response.text();
    return { answer: JSON.parse(text) as unknown, headers: response.headers };
  } catch (error) {
    link.signal.throwIfAborted();
    // fetch throws a TypeError when the body breaks off; what is no JSON came from somebody on the way.
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
    throw new ConnectionError(`the answer is broken: ${messageOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    link.release();
  }
}
