/** What is no request of HTTP, or does not become one in time: answered as everything else, with a `Status`. */

import { STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

import { StatusError } from '#core/status-error.ts';

/** Without this, Node answers with a code and no words. */
export function answerBrokenRequests(server: Server): void {
  const answering = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => answering.set(socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket);
    const isBegun = response !== undefined && response.headersSent && !response.writableFinished;
    if (!socket.writable || error.code === 'ECONNRESET' || isBegun) {
      socket.destroy();
      return;
    }
    const status = refusalOf(error.code);
    const text = `${JSON.stringify(status.toBody())}\n`;
    const head = [
      `HTTP/1.1 ${status.code} ${STATUS_CODES[status.code]}`,
      'Connection: close',
      'Cache-Control: no-store',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(text)}`,
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
  });
}

function refusalOf(code: string | undefined): StatusError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new StatusError(
        'RequestHeaderFieldsTooLarge',
        'path, query and header fields have more than 16 KiB together; send less of them',
      );
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new StatusError('RequestEntityTooLarge', 'the chunks of the body have too many extensions; send none');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new StatusError('RequestTimeout', 'the request did not arrive in time; send it at once');
    case undefined:
    default:
      return new StatusError('BadRequest', 'what came is no request of HTTP/1.1');
  }
}
