/**
 * The connections of one kafkajs client, in one hand. kafkajs never gives up on a request by itself: a producer that was
 * disconnected goes on trying, and a broker that hangs keeps its sockets. Whoever has these can make it stop.
 */

import { connect, isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

import type { Duplex } from 'node:stream';
import type { ISocketFactory, ISocketFactoryArgs } from 'kafkajs';

const KEEP_ALIVE_DELAY_MS = 60_000;

/** What is used of a connection, by kafkajs and here. */
export type KafkaSocket = Duplex & { unref(): unknown };

/** Makes a connection, and calls `onConnect` when it is there. `ssl` is there for TLS. */
export type OpenSocket = (args: ISocketFactoryArgs) => KafkaSocket;

export interface Sockets {
  /** For `new Kafka({ socketFactory })`. */
  readonly open: ISocketFactory;
  /** Breaks all connections; from now on there are no others. Nothing more is sent: what waits for an answer is rejected. */
  destroy(): void;
}

/** @param open @default over TCP, and TLS, of Node's */
export function createSockets(open: OpenSocket = openSocket): Sockets {
  const sockets = new Set<KafkaSocket>();
  let destroyed = false;
  return {
    open(args: ISocketFactoryArgs): Socket {
      if (destroyed) return new Socket().destroy(new Error('the client was ended'));
      const socket = open(args);
      sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        // kafkajs calls it again each time that it fails to reach the broker, and each time a listener would stay.
        socket.unref = () => socket;
      });
      // Of what its type asks for, kafkajs uses a stream and `unref`.
      return socket as Socket;
    },
    destroy(): void {
      destroyed = true;
      // With an error: only that makes kafkajs reject what waits.
      for (const socket of sockets) socket.destroy(new Error('the client was ended'));
    },
  };
}

function openSocket({ host, port, ssl, onConnect }: ISocketFactoryArgs): Socket {
  // A name is sent along for certificates and for routers (SNI); an address must not be, RFC 6066 section 3.
  const socket = ssl
    ? connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }), ...ssl }, onConnect)
    : connect({ host, port }, onConnect);
  return socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS).setNoDelay(true);
}
