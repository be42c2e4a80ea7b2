/** One more port for the same server: bytes are passed on as they are, so the server sees the address that was asked. */

import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Forwarder {
  /** As it stands in the header Host. */
  readonly address: string;
  stop(): Promise<void>;
}

/** @throws the system's error when the port cannot be had. */
export async function startForwarder(options: { host: string; port: number; to: number }): Promise<Forwarder> {
  const { host, port, to } = options;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    const upstream = connect({ host, port: to, noDelay: true });
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one
        .on('error', () => other.destroy())
        .once('close', () => {
          sockets.delete(one);
          other.destroy();
        });
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host, port }, resolve);
  });
  return {
    address: `${host}:${(server.address() as AddressInfo).port}`,
    async stop(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
