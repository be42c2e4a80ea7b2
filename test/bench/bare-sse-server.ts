/** The floor of fan-out: a server that does nothing but `res.write` each frame to each stream. Commands on stdin. */

import { createServer, type ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';

const streams = new Set<ServerResponse>();
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(': ok\n\nretry: 1000\n\nevent: READY\ndata: {}\n\n');
  streams.add(response);
  response.on('close', () => streams.delete(response));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address ? address.port : 0}\n`);
});

/** `<events> <bytes> <now|live>`: that many events to every stream; live: each in a turn of the event loop of its own. */
createInterface({ input: process.stdin }).on('line', (line) => {
  const [events, bytes, pace] = line.split(' ');
  const frame = `event: MODIFIED\nid: ${'0'.repeat(43)}\ndata: {"pad":"${'x'.repeat(Number(bytes))}"}\n\n`;
  void send(Number(events), frame, pace === 'live');
});

async function send(events: number, frame: string, live: boolean): Promise<void> {
  for (let n = 0; n < events; n += 1) {
    for (const stream of streams) stream.write(frame);
    if (live) await new Promise((resolve) => setImmediate(resolve));
  }
}
