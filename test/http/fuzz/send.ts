/** One request over node:http, which sends what fetch would put right. */

import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface RawAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface Sender {
  send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: string | Uint8Array | undefined,
  ): Promise<RawAnswer>;
  close(): void;
}

export function createSender(baseUrl: string, maxSockets: number): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets });
  const { hostname, port } = new URL(baseUrl);
  return {
    send: (method, path, headers, body) =>
      new Promise((resolve, reject) => {
        const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
        const outgoing = request({ agent, hostname, port, method, path, headers: { ...headers, ...length } });
        outgoing.on('error', reject);
        outgoing.on('response', (response) => {
          text(response).then(
            (answer) => resolve({ code: response.statusCode ?? 0, headers: response.headers, text: answer }),
            reject,
          );
        });
        outgoing.end(body);
      }),
    close: () => agent.destroy(),
  };
}
