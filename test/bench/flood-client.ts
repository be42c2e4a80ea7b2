/**
 * A client that reads as fast as it is answered, whatever it is answered, in a process of its own. Arguments: URL, token,
 * connections. It prints a line when it has begun, and at the end of its input how many answers there were of each code.
 */

import { Agent, get } from 'node:http';

const [url = '', token = '', connections = ''] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
const counts: Record<string, number> = {};
let isOver = false;

for (let n = 0; n < Number(connections); n += 1) void flood();
process.stdout.write('flooding\n');
process.stdin.resume().once('end', () => {
  isOver = true;
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  process.exit();
});

async function flood(): Promise<void> {
  while (!isOver) {
    const code = await ask();
    counts[code] = (counts[code] ?? 0) + 1;
  }
}

function ask(): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent, headers: { authorization: `Bearer ${token}` } }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode ?? 0));
    }).once('error', reject);
  });
}
