/** One caller of the API: over node:http, for fetch takes a third of the processor more for itself. */

import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface HttpCaller {
  /** Resolves with the body. @throws when the answer is no success. */
  send(method: string, target: string, body?: object, contentType?: string): Promise<string>;
  close(): void;
}

/** @param connections that it keeps open */
export function createHttpCaller(
  { url, headers }: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
  connections: number,
): HttpCaller {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return { send, close: () => agent.destroy() };

  function send(method: string, target: string, body?: object, contentType = 'application/json'): Promise<string> {
    return new Promise((resolve, reject) => {
      const outgoing = request(url + target, { method, agent, headers: { ...headers, 'content-type': contentType } });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        text(response).then((answer) => {
          if ((response.statusCode ?? 0) < 300) resolve(answer);
          else reject(new Error(`${method} ${target} answered ${response.statusCode}: ${answer}`));
        }, reject);
      });
      outgoing.end(body && JSON.stringify(body));
    });
  }
}
