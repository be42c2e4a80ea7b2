/**
 * The driver's sockets, with the two things that it lacks: a server that has stopped answering is noticed, and one that
 * hangs up, as balancers with nothing behind them do, is an error. The driver would wait for the first until TCP gives
 * up, which takes 15 minutes, and the second would make it try again at once and for ever. Under TLS the driver takes
 * these sockets over, and is as it is.
 */

import { connect, type Socket } from 'node:net';
import { connectionError } from '#adapters/postgres/connection-error.ts';

/** What the driver passes to a maker of sockets. */
export interface SocketTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** A Unix socket. */
  readonly path?: string | false;
}

export interface SocketOptions {
  /** After which a statement without any answer is given up, with its connection; absent: never. */
  readonly answerTimeoutMs: number | undefined;
  /** Called when a socket breaks, before the driver hears of it. */
  readonly onBroken: () => void;
}

/** Several hosts take turns. */
export function socketFactory({ answerTimeoutMs, onBroken }: SocketOptions): (target: SocketTarget) => Socket {
  let attempts = 0;
  return function openSocket({ host, port, path }: SocketTarget): Socket {
    const turn = attempts++ % host.length;
    const socket = path ? connect(path) : connect({ host: host[turn] ?? '', port: port[turn] ?? 0 });
    socket.once('error', onBroken);
    refuseHangUp(socket);
    if (answerTimeoutMs !== undefined) giveUpAfter(socket, answerTimeoutMs);
    // For the certificate's name.
    return Object.assign(socket, { host: host[turn], port: port[turn] });
  };
}

function refuseHangUp(socket: Socket): void {
  socket.once('end', () => socket.destroy(connectionError('ECONNRESET', 'the server hung up')));
}

function giveUpAfter(socket: Socket, answerTimeoutMs: number): void {
  let timer: NodeJS.Timeout | undefined;
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = function writeAndWait(...args: unknown[]): boolean {
    timer ??= setTimeout(giveUp, answerTimeoutMs);
    return write(...args);
  };
  socket.on('data', settle).once('close', settle);

  function settle(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  function giveUp(): void {
    socket.destroy(connectionError('ETIMEDOUT', `the server did not answer within ${answerTimeoutMs} ms`));
  }
}
