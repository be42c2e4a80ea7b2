/** Connections of one object to the Kafka brokers, of which there may be any number: each relay holds six. */

import type { DurableObjectNamespace } from 'cloudflare:workers';
import type { OpenSocket } from '#adapters/kafka/client/sockets.ts';
import { RelayedSocket } from '#adapters/workers/relayed-socket.ts';
import type { KafkaRelay } from '#infra/cloudflare/kafka-relay.ts';

/** That the platform lets an object have open at once. */
const MOST_CONNECTIONS = 6;

/** @param owner the object's name: it has relays of its own. */
export function brokerSockets(relays: DurableObjectNamespace<KafkaRelay>, owner: string): OpenSocket {
  const held = new Map<string, number>();

  return function openSocket({ host, port, ssl, onConnect }) {
    const name = relayWithRoom(`${owner} ${host}:${port}`);
    held.set(name, (held.get(name) ?? 0) + 1);
    const socket = new RelayedSocket(() => relays.getByName(name).open({ host, port, isTls: Boolean(ssl) }), onConnect);
    socket.once('close', () => leave(name));
    return socket;
  };

  function relayWithRoom(prefix: string): string {
    for (let index = 0; ; index += 1) {
      const name = `${prefix} ${index}`;
      if ((held.get(name) ?? 0) < MOST_CONNECTIONS) return name;
    }
  }

  function leave(name: string): void {
    const left = (held.get(name) ?? 1) - 1;
    if (left > 0) held.set(name, left);
    else held.delete(name);
  }
}
