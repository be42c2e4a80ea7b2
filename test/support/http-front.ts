/** An HTTP proxy in front of a server, as a test needs one: it adds headers, answers some requests itself, and cuts. */

import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HttpFrontOptions {
  /** Asked at each request: a server that is started again may be elsewhere. */
  readonly target: () => string;
  /** Added to every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Answers a request instead of the server; false leaves it to the server. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export interface HttpFront {
  /** Without a slash at the end. */
  readonly url: string;
  /** Paths with their queries, in order. */
  readonly requests: readonly string[];
  /** Breaks all connections. New ones are taken. */
  cut(): void;
  stop(): Promise<void>;
}

export async function startHttpFront(options: HttpFrontOptions): Promise<HttpFront> {
  const requests: string[] = [];
  const server = createServer((incoming, response) => {
    requests.push(incoming.url ?? '');
    if (!options.answer?.(incoming, response)) passOn(incoming, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    cut: () => server.closeAllConnections(),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  function passOn(incoming: IncomingMessage, response: ServerResponse): void {
    const { host: _, ...headers } = incoming.headers;
    const onward = request(
      options.target() + (incoming.url ?? ''),
      { method: incoming.method, headers: { ...headers, ...options.headers }, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('error', () => response.destroy()).pipe(response);
        // The head is news, also before the first byte of the body.
        response.flushHeaders();
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }
}
