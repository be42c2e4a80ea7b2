/**
 * A member of a group as a process of its own: handles one event after the other, acks what it has handled while it goes
 * on, and prints how many that were.
 *
 * `node group-member.ts <address of the stream> <address for acks> <milliseconds that an event takes>`
 */

import { setTimeout as delay } from 'node:timers/promises';
import { openSse } from '#test/support/sse-client.ts';

const [streamUrl = '', acksUrl = '', handlerMs = '0'] = process.argv.slice(2);
// oxlint-disable-next-line node/no-process-env -- a token is no argument: all processes see those
const token = process.env['TOKEN'] ?? '';
const REPORT_MS = 20;

const waiting: { readonly id: string; readonly lane: string }[] = [];
const unacked = new Map<string, string>();
let handled = 0;
let reported = 0;
let isHandling = false;
let isAcking = false;

await openSse(streamUrl, {
  token,
  keep: false,
  onEvent({ event, id, data }) {
    if (event === 'READY') process.stdout.write('ready\n');
    if (id === undefined) return;
    waiting.push({ id, lane: data.lane });
    if (!isHandling) void handle();
  },
});
setInterval(() => {
  if (handled > reported) process.stdout.write(`${(reported = handled)}\n`);
}, REPORT_MS);

async function handle(): Promise<void> {
  isHandling = true;
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    if (handlerMs !== '0') await delay(Number(handlerMs));
    handled += 1;
    unacked.set(next.lane, next.id);
    if (!isAcking) void ack();
  }
  isHandling = false;
}

async function ack(): Promise<void> {
  isAcking = true;
  // What was handled in this turn goes together.
  await new Promise(setImmediate);
  while (unacked.size > 0) {
    const acks = [...unacked.values()];
    unacked.clear();
    const answer = await fetch(acksUrl, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ acks }),
    });
    if (answer.status !== 200) throw new Error(`acks were answered ${answer.status}: ${await answer.text()}`);
    await answer.arrayBuffer();
  }
  isAcking = false;
}
