/** Calls of one server, with its token; what is not a success is thrown, in its class. */

import { ConnectionError, isStatus, type StatusError, statusErrorOf, Unauthorized } from '#infra/client/errors.ts';

/**
 * A bearer token, or where to get one: asked before each call. `refused` is a token that the server does not take any
 * more; a source that keeps tokens gets another one then. What it throws is tried again later.
 */
export type Token = string | ((refused: string | undefined) => string | Promise<string>);

export interface Connection {
  /** Of a listener, such as `https://api.example.com`; in a page, its own origin or one that allows it. */
  readonly url: string;
  /** @default none: something on the way adds it */
  readonly token?: Token | undefined;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly response: Response;
  /** The token that it was got with is refused, though not in its head. Newer ones are not by that. */
  refuseToken(): void;
}

export interface Caller {
  /**
   * The answer, once its head has come. A refused token is replaced once.
   * @throws {StatusError} any answer but 2xx. @throws {ConnectionError} the reason of the signal's abort.
   */
  send(path: string, options: CallOptions): Promise<Answer>;
}

/** A proxy's mistake must not silence a client for days. */
const LONGEST_RETRY_AFTER_MS = 600_000;

/** @throws {TypeError} for a malformed url. */
export function createCaller({ url, token }: Connection): Caller {
  const base = new URL(url).href.replace(/\/$/, '');
  let refused: string | undefined;

  return {
    async send(path, options) {
      const used = await currentToken();
      try {
        return await call(path, options, used);
      } catch (error) {
        if (!(error instanceof Unauthorized) || typeof token !== 'function') throw error;
        refused = used;
        return call(path, options, await currentToken());
      }
    },
  };

  async function call(
    path: string,
    { method = 'GET', headers, body, signal }: CallOptions,
    used: string | undefined,
  ): Promise<Answer> {
    const response = await fetch(base + path, {
      method,
      headers: { ...headers, ...(used !== undefined && { Authorization: `Bearer ${used}` }) },
      ...(body !== undefined && { body }),
      // What a cache has kept of a stream is over.
      cache: 'no-store',
      signal,
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new ConnectionError(`${base} cannot be reached: ${messageOf(error)}`, { cause: error });
    });
    if (!response.ok) throw await failureOf(response);
    return { response, refuseToken: () => void (refused = used) };
  }

  async function currentToken(): Promise<string | undefined> {
    if (typeof token !== 'function') return token;
    try {
      return await token(refused);
    } catch (error) {
      throw new ConnectionError(`there is no token: ${messageOf(error)}`, { cause: error });
    }
  }
}

async function failureOf(response: Response): Promise<StatusError> {
  const waitMs = retryAfterMs(response.headers.get('retry-after'), Date.now());
  const text = await response.text().catch(() => '');
  const body = parseJson(text);
  if (isStatus(body)) return statusErrorOf(body, waitMs);
  // A proxy on the way.
  const message = `${response.status} ${response.statusText} from ${response.url}: ${text.slice(0, 200)}`;
  return statusErrorOf(
    { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason: '', code: response.status },
    waitMs,
  );
}

/**
 * What a `Retry-After` header asks for, ten minutes at most; 0 without one that can be read.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
function retryAfterMs(header: string | null, nowMs: number): number {
  if (header === null) return 0;
  const text = header.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(waitMs) ? 0 : Math.min(LONGEST_RETRY_AFTER_MS, Math.max(0, waitMs));
}

/** Undefined for what is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
