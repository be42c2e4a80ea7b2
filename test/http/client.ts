/** A caller of the resource API: plain fetch, and what an answer holds. */

import type { Grant, Target } from '#test/http/target.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; compared, not typed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  readonly body: any;
}

export interface Client {
  /** Any request. A body that is no text is sent as JSON; its type follows the method unless a header says otherwise. */
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string): Promise<Answer>;
  post(path: string, body: unknown): Promise<Answer>;
  put(path: string, body: unknown): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  delete(path: string, body?: unknown): Promise<Answer>;
}

export async function clientOf(target: Target, grant: Grant): Promise<Client> {
  return clientWith(target.baseUrl, `Bearer ${await target.token(grant)}`);
}

/** A client that sends this `Authorization` header, or none. */
export function clientWith(baseUrl: string, authorization: string | undefined): Client {
  return {
    send,
    get: (path) => send('GET', path),
    post: (path, body) => send('POST', path, body),
    put: (path, body) => send('PUT', path, body),
    patch: (path, body) => send('PATCH', path, body),
    delete: (path, body) => send('DELETE', path, body),
  };

  async function send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        ...(authorization !== undefined && { Authorization: authorization }),
        ...(body !== undefined && { 'Content-Type': type }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw(body) ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parse(text) };
  }
}

function isRaw(body: unknown): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === 'string' || body instanceof Uint8Array;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
