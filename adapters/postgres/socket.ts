/**
 * The driver's connections to the server, with the two things that it lacks: a server that has stopped answering is
 * noticed, and one that hangs up before its first answer, as balancers with nothing behind them do, is an error. The
 * driver would wait for the first until TCP gives up (15 minutes), and try the second again without a pause.
 */

import { connect, type Socket } from 'node:net';

/** What the driver passes to a maker of sockets. */
export interface SocketTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** A Unix socket. */
  readonly path?: string | false;
}

/**
 * Makes the sockets of a pool; several hosts take turns.
 * @param answerTimeoutMs after which a statement without any answer is given up, with its connection; absent: never.
 */
export function socketFactory(answerTimeoutMs: number | undefined): (target: SocketTarget) => Socket {
  let attempts = 0;
  return function openSocket({ host, port, path }: SocketTarget): Socket {
    const turn = attempts++ % host.length;
    const socket = path ? connect(path) : connect({ host: host[turn] ?? '', port: port[turn] ?? 0 });
    refuseHangUp(socket);
    if (answerTimeoutMs !== undefined) giveUpAfter(socket, answerTimeoutMs);
    // For the certificate's name.
    return Object.assign(socket, { host: host[turn], port: port[turn] });
  };
}

function refuseHangUp(socket: Socket): void {
  let hasAnswered = false;
  socket.once('data', () => (hasAnswered = true));
  socket.once('end', () => {
    if (!hasAnswered) socket.destroy(connectionError('ECONNRESET', 'the server hung up before it answered'));
  });
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

function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
