/** One HTTP listener of a Node process. */

import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { listen, type ListenOptions } from '#adapters/node/listen.ts';
import { cutSilentPeers } from '#adapters/node/silent-peers.ts';
import { refuseRequest, refuseUnreadable } from '#adapters/node/unreadable-requests.ts';
import type { Logger } from '#core/ports/logger.ts';

export interface HttpServerOptions extends ListenOptions {
  readonly fetch: (request: Request, env: HttpBindings) => Response | Promise<Response>;
  /** Gets a line, at `debug`, for each request that no handler saw. */
  readonly logger?: Logger;
  /** How long a client may take. @default 10 s for the header, 60 s for the request, looked at every 5 s */
  readonly timeoutsMs?: { readonly header: number; readonly request: number; readonly check: number };
}

export interface HttpServer {
  /** Without a slash at the end. Of a wildcard host, the loopback address. */
  readonly url: string;
  /** Takes no more connections, answers what comes on those that there are and ends them, then closes what is left. */
  stop(): Promise<void>;
}

const STOP_GRACE_MS = 8_000;
/** For connections on which nothing was asked yet. */
const SILENT_GRACE_MS = 1_000;
const SWEEP_MS = 20;
/** Against clients that send their request a byte at a time. */
const TIMEOUTS_MS = { header: 10_000, request: 60_000, check: 5_000 };

/** Answers once it listens. @throws the system's error when the address cannot be had. */
export async function startHttpServer({
  host,
  port,
  fetch,
  logger,
  timeoutsMs = TIMEOUTS_MS,
}: HttpServerOptions): Promise<HttpServer> {
  const serverOptions = {
    headersTimeout: timeoutsMs.header,
    requestTimeout: timeoutsMs.request,
    connectionsCheckingInterval: timeoutsMs.check,
    // Without one, node:http answers nothing but 400; the adaptor refuses it too.
    requireHostHeader: false,
  };
  // HTTP/1.1 only: the bindings are those of node:http.
  const answer = getRequestListener((request, env) => fetch(request, env as HttpBindings), {
    overrideGlobalObjects: false,
    errorHandler: (error) => refuseRequest(error, logger),
  });
  const server = createServer(serverOptions, (request, response) => void answer(request, response));
  refuseUnreadable(server, logger);
  const sockets = new Set<Socket>();
  // Node does not count them as idle.
  const withoutRequest = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    withoutRequest.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      withoutRequest.delete(socket);
    });
  });
  server.on('request', ({ socket }) => withoutRequest.delete(socket));
  const url = await listen(server, { host, port });
  const stopCutting = cutSilentPeers({ sockets, port: Number(new URL(url).port) });
  return {
    url,
    async stop() {
      const expiry = setTimeout(() => {
        for (const socket of withoutRequest) socket.destroy();
      }, SILENT_GRACE_MS);
      await stop(server);
      clearTimeout(expiry);
      stopCutting();
    },
  };
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A client that always has a request in flight would keep its connection, and us, for ever.
  server.prependListener('request', function endWithAnswer(_request, response) {
    response.shouldKeepAlive = false;
  });
  const sweeping = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  const expiry = setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS);
  await closed;
  clearTimeout(expiry);
  clearInterval(sweeping);
}
