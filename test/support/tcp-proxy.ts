/** A TCP proxy that a test makes misbehave: it stalls, cuts, refuses, and looks away, as networks and balancers do. */

import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export interface TcpProxyOptions {
  readonly host: string;
  readonly port: number;
  /** Cuts a connection on which nothing has moved, either way, for this long. @default never */
  readonly idleTimeoutMs?: number;
  /** Treats what the server sends, such as to hold a part of it back. @default passes it on */
  readonly answers?: (toClient: (bytes: Buffer) => void) => (bytes: Buffer) => void;
}

export interface TcpProxy {
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: number;
  /** Connections that were cut for being idle. */
  readonly idleCuts: number;
  /** Breaks all connections, with a reset. New ones are taken. */
  cut(): void;
  /** Nothing moves any more, either way, and nobody is told; new connections are taken and lead nowhere. */
  stall(): void;
  /** The open connections lead nowhere from now on, and nobody is told; new ones work. As by a router that forgot them. */
  abandon(): void;
  /** Breaks all connections; new ones are refused, until `resume`. */
  refuse(): Promise<void>;
  /** Breaks all connections; new ones are taken and closed at once, as by a balancer with nothing behind it. */
  hangUp(): void;
  /** Works again. What stalled goes on. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export async function startTcpProxy(options: TcpProxyOptions): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  let mode: 'pass' | 'stall' | 'hang up' = 'pass';
  let idleCuts = 0;
  let listener = await listen(0);
  const { port } = listener.address() as AddressInfo;

  return {
    port,
    get connections() {
      return pairs.size;
    },
    get idleCuts() {
      return idleCuts;
    },
    cut,
    stall() {
      mode = 'stall';
      for (const { client, server } of pairs) for (const socket of [client, server]) socket.pause();
    },
    abandon() {
      for (const { client, server } of pairs) {
        for (const socket of [client, server]) socket.removeAllListeners('data').resume();
      }
    },
    async refuse() {
      cut();
      await close();
    },
    hangUp() {
      mode = 'hang up';
      cut();
    },
    async resume() {
      mode = 'pass';
      for (const { client, server } of pairs) for (const socket of [client, server]) socket.resume();
      if (!listener.listening) listener = await listen(port);
    },
    async stop() {
      cut();
      await close();
    },
  };

  function cut(): void {
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  async function close(): Promise<void> {
    if (!listener.listening) return;
    const closed = new Promise((resolve) => listener.once('close', resolve));
    listener.close();
    cut();
    await closed;
  }

  async function listen(at: number): Promise<Server> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, accept);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(at, '127.0.0.1', resolve);
    });
    return server;
  }

  function accept(client: Socket): void {
    if (mode === 'hang up') {
      client.end();
      client.resume();
      return;
    }
    const server = connect({ host: options.host, port: options.port, allowHalfOpen: true });
    const pair = { client, server };
    pairs.add(pair);
    const fromServer = options.answers?.((bytes) => forward(bytes, server, client));
    pipe(client, server, (bytes) => forward(bytes, client, server));
    pipe(server, client, fromServer ?? ((bytes) => forward(bytes, server, client)));
    for (const socket of [client, server]) {
      socket.on('error', () => undefined);
      socket.once('close', () => {
        pairs.delete(pair);
        for (const other of [client, server]) if (!other.destroyed) other.destroySoon();
      });
      if (options.idleTimeoutMs !== undefined) socket.setTimeout(options.idleTimeoutMs, () => endIdle(pair));
    }
    if (mode === 'stall') server.pause();
    else client.resume();
  }

  function endIdle({ client, server }: Pair): void {
    idleCuts += 1;
    client.destroy();
    server.destroy();
  }
}

function pipe(from: Socket, to: Socket, take: (bytes: Buffer) => void): void {
  from.on('data', take);
  from.once('end', () => to.end());
}

/** At the pace of whoever receives, so that back-pressure passes through. */
function forward(bytes: Buffer, from: Socket, to: Socket): void {
  if (to.write(bytes)) return;
  from.pause();
  to.once('drain', () => from.resume());
}
