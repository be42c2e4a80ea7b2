/** A reverse proxy as stands before a deployment: TLS, HTTP/2 and HTTP/1.1 to its clients, HTTP/1.1 to the server. */

import { readFileSync } from 'node:fs';
import { request as requestUpstream } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import type { AddressInfo } from 'node:net';

export interface TlsProxy {
  /** `https://localhost:…` */
  readonly url: string;
  /** What its clients trust it by. */
  readonly certificate: string;
  stop(): Promise<void>;
}

/** For localhost, trusted by nobody else. */
const KEY = new URL('./tls/localhost.key', import.meta.url);
const CERTIFICATE = new URL('./tls/localhost.crt', import.meta.url);
/** Of one connection, and not of what it carries (RFC 9113 section 8.2.2). */
const HOP_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-connection']);

/** @param upstream where the server is. */
export async function startTlsProxy(upstream: string): Promise<TlsProxy> {
  const certificate = readFileSync(CERTIFICATE, 'utf8');
  const server = createSecureServer({ key: readFileSync(KEY), cert: certificate, allowHTTP1: true });
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  server.on('request', (request, response) => forward(upstream, request, response));
  await listen(server);
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    certificate,
    async stop() {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function listen(server: Http2SecureServer): Promise<void> {
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
}

function forward(upstream: string, request: Http2ServerRequest, response: Http2ServerResponse): void {
  const { method, url } = request;
  const forwarded = requestUpstream(new URL(url, upstream), { method, headers: carried(request.headers) });
  forwarded.on('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, carried(answer.headers));
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  forwarded.on('error', () => response.destroy());
  response.on('error', () => undefined);
  response.on('close', () => forwarded.destroy());
  request.pipe(forwarded);
}

function carried<Headers extends object>(headers: Headers): Headers {
  const kept = Object.entries(headers).filter(([name]) => !name.startsWith(':') && !HOP_HEADERS.has(name));
  return Object.fromEntries(kept) as Headers;
}
