/** Requests that never come to a handler: node:http and the adaptor refuse them without a word. Here they get a Status. */

import { randomUUID } from 'node:crypto';
import { maxHeaderSize, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { RequestError } from '@hono/node-server';
import type { Logger } from '#core/ports/logger.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';

interface Refusal {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Refuses them as all others are refused. A connection on which an answer has begun, or on which several are awaited, is
 * cut instead: nobody could tell to which request the refusal belongs.
 */
export function refuseUnreadable(server: Server, logger?: Logger): void {
  const awaited = new WeakMap<Duplex, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    const responses = awaited.get(socket) ?? new Set();
    awaited.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const responses = [...(awaited.get(socket) ?? [])];
    const isTooLate = responses.length > 1 || responses.some(({ headersSent }) => headersSent);
    if (!socket.writable || error.code === 'ECONNRESET' || isTooLate) socket.destroy();
    else socket.end(toText(refusalOf(statusOf(error.code), logger)), () => socket.destroy());
  });
  server.on('checkExpectation', ({ headers }, response) => {
    const shown = JSON.stringify(headers.expect?.slice(0, 100));
    const error = new StatusError('ExpectationFailed', `the header Expect is ${shown}; allowed is "100-continue"`);
    const { code, headers: fields, body } = refusalOf(error, logger);
    response.writeHead(code, fields).end(body);
  });
}

/** The answer to what the adaptor throws before a handler is asked. */
export function refuseRequest(error: unknown, logger?: Logger): Response {
  const status =
    error instanceof RequestError
      ? new StatusError('BadRequest', `the request cannot be read: ${error.message}`)
      : toStatusError(error);
  if (status.code === 500) logger?.error({ err: status.cause ?? status }, 'request failed');
  const { code, headers, body } = refusalOf(status, logger);
  return new Response(body, { status: code, headers });
}

/**
 * The same for a handler of node:http that has not answered yet. The connection stays: who still sends a body would not
 * see the answer of one that is cut.
 */
export function refuse(response: ServerResponse, error: StatusError, logger?: Logger): void {
  const { code, headers, body } = refusalOf(error, logger);
  response.writeHead(code, { ...headers, Connection: 'keep-alive' }).end(body);
}

function refusalOf(error: StatusError, logger: Logger | undefined): Refusal {
  const requestId = randomUUID();
  logger?.debug({ requestId, status: error.code, message: error.message }, 'request refused unread');
  const body = JSON.stringify(error.toBody());
  const { retryAfterSeconds } = error.details ?? {};
  return {
    code: error.code,
    headers: {
      ...(retryAfterSeconds !== undefined && { 'Retry-After': String(retryAfterSeconds) }),
      Connection: 'close',
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
      'X-Request-Id': requestId,
    },
    body,
  };
}

function statusOf(code: string | undefined): StatusError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new StatusError(
      'RequestTimeout',
      'the request did not come whole in time, so nothing was done; send its headers and its body without a pause',
    );
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new StatusError(
      'RequestHeaderFieldsTooLarge',
      `the request line and the headers together are larger than ${maxHeaderSize} bytes; send a smaller token, or shorter parameters`,
    );
  }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') {
    return new StatusError('RequestEntityTooLarge', 'the chunks of the body have extensions that are too large');
  }
  return new StatusError('BadRequest', 'the request is no HTTP/1.1');
}

function toText({ code, headers, body }: Refusal): string {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${code} ${STATUS_CODES[code]}\r\n${fields.join('')}\r\n${body}`;
}
