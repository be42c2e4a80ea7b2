/** Requests that node:http cannot read never come to a handler, and it refuses them without a word. */

import { maxHeaderSize, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { StatusError } from '#core/status-error.ts';

/** Refuses them as all others are refused: with a Status. A connection on which an answer is on its way is cut instead. */
export function refuseUnreadable(server: Server): void {
  const answers = new WeakMap<Duplex, number>();
  const count = (socket: Duplex, change: number): unknown => answers.set(socket, (answers.get(socket) ?? 0) + change);
  server.on('request', ({ socket }, response) => {
    count(socket, 1);
    response.once('close', () => count(socket, -1));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET' || (answers.get(socket) ?? 0) > 0) socket.destroy();
    else socket.end(refusalOf(error.code), () => socket.destroy());
  });
}

function refusalOf(code: string | undefined): string {
  // What was asked for is not known, so nobody can be told whether to ask again.
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return headOf(408, 0);
  const error = statusOf(code);
  const body = JSON.stringify(error.toBody());
  return headOf(error.code, Buffer.byteLength(body)) + body;
}

function statusOf(code: string | undefined): StatusError {
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

function headOf(code: number, length: number): string {
  const type = length > 0 ? 'Content-Type: application/json\r\n' : '';
  return `HTTP/1.1 ${code} ${STATUS_CODES[code]}\r\nConnection: close\r\n${type}Content-Length: ${length}\r\n\r\n`;
}
