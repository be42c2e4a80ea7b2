/**
 * A Durable Object that holds connections to one Kafka broker for another object, which speaks Kafka over them but has no
 * room for them among the six that it may have open.
 */

import { DurableObject, type env as bindings } from 'cloudflare:workers';
import { connect } from 'cloudflare:sockets';
import type { Line } from '#adapters/workers/relayed-socket.ts';
import { pump } from '#adapters/workers/pump.ts';

export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

export class KafkaRelay extends DurableObject<typeof bindings> {
  /** Its connection ends with either end, or with the object that asked for it. @throws when there is none. */
  async open({ host, port, isTls }: BrokerAddress): Promise<Line> {
    const socket = connect({ hostname: host, port }, { secureTransport: isTls ? 'on' : 'off', allowHalfOpen: false });
    await socket.opened;
    const [down, up] = [new IdentityTransformStream(), new IdentityTransformStream()];
    const pumps = [pump(socket.readable, down.writable), pump(up.readable, socket.writable)];
    for (const { ended } of pumps) void ended.then(close);
    return { readable: down.readable, writable: up.writable, close };

    function close(): void {
      for (const { stop } of pumps) stop();
      socket.close().catch(() => undefined);
    }
  }
}
