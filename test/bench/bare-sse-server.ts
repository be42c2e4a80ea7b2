/** The floor of fan-out: a server that does nothing but `res.write` each frame to each stream. Commands on stdin. */

import { createServer, type ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';

const streams = new Set<ServerResponse>();
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(': ok\n\nevent: READY\ndata: {}\n\n');
  streams.add(response);
  response.on('close', () => streams.delete(response));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address ? address.port : 0}\n`);
});

/** `<events> <bytes>`: that many events, one after the other, to every stream. */
createInterface({ input: process.stdin }).on('line', (line) => {
  const [events = 0, bytes = 0] = line.split(' ').map(Number);
  const frame = `event: MODIFIED\nid: 0123456789012345678901234567890123456789012\ndata: {"pad":"${'x'.repeat(bytes)}"}\n\n`;
  for (let n = 0; n < events; n += 1) for (const stream of streams) stream.write(frame);
});
