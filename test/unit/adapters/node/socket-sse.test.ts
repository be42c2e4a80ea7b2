import { createServer } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { expect, test } from 'vitest';
import { socketSse } from '#adapters/node/socket-sse.ts';

test('a client that left while its stream was being prepared is told of as closed, once', async () => {
  let closes = 0;
  const told = new Promise<void>((resolve, reject) => {
    const socket = new Socket();
    const server = createServer((incoming, outgoing) => {
      outgoing.once('close', () => {
        socketSse.open({ incoming, outgoing }, {}, { onDrain: () => undefined, onClose });
        expect(closes).toBe(0);
        setImmediate(() => server.close(() => resolve()));
      });
      socket.destroy();
    });
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      socket.connect((server.address() as AddressInfo).port, '127.0.0.1', () => {
        socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
      });
    });
  });
  await told;
  expect(closes).toBe(1);

  function onClose(): void {
    closes += 1;
  }
});
