/**
 * An address of the worker: on one machine ports tell what host names tell elsewhere. Whoever asks here asks for this one
 * host, whatever the request names, and has nothing of wrangler's own: its tools (SQL in objects, scheduled runs) take no
 * token.
 */

import { Agent, createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import type { Logger } from '#core/ports/logger.ts';
import { listen, type ListenOptions } from '#adapters/node/listen.ts';
import { refuse, refuseUnreadable } from '#adapters/node/unreadable-requests.ts';
import { StatusError } from '#core/status-error.ts';
import { MAX_BODY_BYTES } from '#http/json-body.ts';

export interface ForwarderOptions extends ListenOptions {
  /** The port of wrangler on the loopback interface, as it is now. */
  readonly to: () => number;
  /** The one path of wrangler's that is open here. */
  readonly tool?: string | undefined;
  readonly logger: Logger;
}

export interface Forwarder {
  /** As the header Host has it at the worker. */
  readonly address: string;
  stop(): Promise<void>;
}

const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 5_000 };
/** workerd closes connections that are idle for 5 s; one must not be used in that moment. */
const IDLE_MS = 2_000;
const TOOLS = '/cdn-cgi/';
/** Runs what cron runs. */
export const SCHEDULED = '/cdn-cgi/local/scheduled';
/** Of one connection, by RFC 9110 (7.6.1); and what is said anew. */
const NOT_PASSED_ON = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade', 'expect', 'host']);
/** Wrangler takes another URL from these. */
const OF_WRANGLER = 'mf-';

/** @throws the system's error when the port cannot be had. */
export async function startForwarder({ host, port, to, tool, logger }: ForwarderOptions): Promise<Forwarder> {
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  // Which host is meant is known.
  const server = createServer({ ...TIMEOUTS, requireHostHeader: false }, forward);
  refuseUnreadable(server, logger);
  const address = new URL(await listen(server, { host, port })).host;
  return {
    address,
    async stop(): Promise<void> {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };

  function forward(request: IncomingMessage, response: ServerResponse): void {
    const target = targetOf(request.url ?? '');
    if (!target) return refuse(response, new StatusError('BadRequest', 'the target of the request is no path'), logger);
    const { pathname, search } = target;
    if (pathname.startsWith(TOOLS) && pathname !== tool)
      return refuse(response, new StatusError('NotFound', `there is nothing below ${TOOLS}`), logger);
    const upstream = ask({
      agent,
      host: '127.0.0.1',
      port: to(),
      method: request.method,
      path: pathname + search,
      headers: ['Host', address, ...passedOn(request.rawHeaders)],
    });
    upstream
      .on('response', (answer) => passBack(answer, response, logger))
      .on('error', (error) => {
        // Behind an answer, a body may not be wanted any more; an answer that breaks off is told by itself.
        if (!response.headersSent) refuse(response, away(error), logger);
      });
    response.once('close', () => {
      if (!response.writableFinished || !upstream.writableFinished) upstream.destroy();
    });
    // Its body may never come, and be no concern of the answer.
    upstream.flushHeaders();
    passBody(request, upstream, response);
  }

  /** The worker's front breaks when the worker refuses a body while it comes, so one without a length is counted here. */
  function passBody(request: IncomingMessage, upstream: ReturnType<typeof ask>, response: ServerResponse): void {
    let bytes = 0;
    if (request.headers['content-length'] === undefined)
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.byteLength;
        if (bytes <= MAX_BODY_BYTES || response.headersSent) return;
        request.unpipe(upstream).resume();
        const error = new StatusError('RequestEntityTooLarge', `the body is larger than ${MAX_BODY_BYTES} bytes`);
        refuse(response, error, logger);
      });
    request.pipe(upstream);
  }
}

function passBack(answer: IncomingMessage, response: ServerResponse, logger: Logger): void {
  const { statusCode = 500, headers, rawHeaders } = answer;
  // The worker's own are Status objects: this is wrangler, without a worker behind it.
  if (statusCode === 500 && !headers['content-type']?.startsWith('application/json')) {
    answer.resume();
    return refuse(response, away(new Error('wrangler answered with 500')), logger);
  }
  if (response.headersSent) return void answer.resume();
  response.writeHead(statusCode, passedOn(rawHeaders, 'transfer-encoding')).flushHeaders();
  pipeline(answer, response, () => undefined);
}

function away(cause: Error): StatusError {
  return new StatusError('ServiceUnavailable', 'the worker is being started again; what was asked may have been done', {
    cause,
  });
}

/** Without dots in its path, encoded ones neither: what is looked at is what is asked for. */
function targetOf(text: string): URL | undefined {
  const url = text.startsWith('/') ? `http://worker${text}` : text;
  return URL.canParse(url) && new URL(url).protocol === 'http:' ? new URL(url) : undefined;
}

/** Names and values in turns, as node:http has them. */
function passedOn(headers: readonly string[], ...except: readonly string[]): string[] {
  return headers.flatMap((name, index) => {
    const lower = name.toLowerCase();
    if (index % 2 === 1 || NOT_PASSED_ON.has(lower) || except.includes(lower) || lower.startsWith(OF_WRANGLER))
      return [];
    return [name, headers[index + 1] ?? ''];
  });
}
