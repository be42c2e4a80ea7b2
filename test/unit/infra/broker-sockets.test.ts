import { once } from 'node:events';
import { expect, test } from 'vitest';
import { brokerSockets } from '#infra/cloudflare/broker-sockets.ts';

test('an object has six connections to a broker in each of its relays, and takes the places that were left', async () => {
  const opened: string[] = [];
  const relays = {
    getByName: (name: string) => ({
      async open({ host, port, isTls }: { host: string; port: number; isTls: boolean }) {
        opened.push(`${name} > ${isTls ? 'tls' : 'tcp'} ${host}:${port}`);
        const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
        return { readable, writable, close: () => undefined };
      },
    }),
  };
  const open = brokerSockets(relays as never, 'watch-0');
  const connect = (host: string, ssl?: object) =>
    open({ host, port: 9092, onConnect: () => undefined, ...(ssl && { ssl }) } as never);
  const sockets = Array.from({ length: 7 }, () => connect('a'));
  sockets.push(connect('b', {}));
  await expect.poll(() => opened.length).toBe(8);
  expect(opened).toEqual([
    ...Array.from({ length: 6 }, () => 'watch-0 a:9092 0 > tcp a:9092'),
    'watch-0 a:9092 1 > tcp a:9092',
    'watch-0 b:9092 0 > tls b:9092',
  ]);
  const gone = once(sockets[2]!, 'close');
  sockets[2]!.destroy();
  await gone;
  sockets.push(connect('a'));
  await expect.poll(() => opened.at(-1)).toBe('watch-0 a:9092 0 > tcp a:9092');
  for (const socket of sockets) socket.destroy();
});
