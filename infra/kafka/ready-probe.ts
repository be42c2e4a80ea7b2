/**
 * Whether a broker serves, by the smallest request that tells it: Metadata version 1 without topics, on a bare socket.
 * It is answered 20 to 40 ms after the port opens; a client library would put its own back-off in between.
 * @see https://kafka.apache.org/protocol
 */

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const METADATA_KEY = 3;
const METADATA_VERSION = 1;
const ANSWER_TIMEOUT_MS = 1_000;
const POLL_MS = 20;

/** Ids of the brokers that the one on this port knows to be at work. Rejects when it does not answer. */
export async function brokerIds(port: number): Promise<number[]> {
  return parseBrokerIds(await ask(port));
}

/** Polls until the answer satisfies; false when the signal ends it before. */
export async function waitForBrokers(
  port: number,
  isEnough: (ids: readonly number[]) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    const ids = await brokerIds(port).catch(() => []);
    if (isEnough(ids)) return true;
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
  return false;
}

/** Size, then api key, version, correlation id, no client id; no topics. */
function request(): Buffer {
  const bytes = Buffer.alloc(18);
  bytes.writeInt32BE(bytes.length - 4, 0);
  bytes.writeInt16BE(METADATA_KEY, 4);
  bytes.writeInt16BE(METADATA_VERSION, 6);
  bytes.writeInt16BE(-1, 12);
  return bytes;
}

function ask(port: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    let answer = Buffer.alloc(0);
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`)));
    socket.once('connect', () => socket.write(request()));
    socket.on('data', (bytes) => {
      answer = Buffer.concat([answer, bytes]);
      if (answer.length < 4 || answer.length < 4 + answer.readInt32BE(0)) return;
      socket.destroy();
      resolve(answer);
    });
    socket.once('error', reject).once('close', () => reject(new Error('the broker hung up')));
  });
}

/** After size and correlation id: an array of id, host, port, and a rack that is null here. */
function parseBrokerIds(answer: Buffer): number[] {
  const ids: number[] = [];
  let at = 12;
  for (let left = answer.readInt32BE(8); left > 0; left--) {
    ids.push(answer.readInt32BE(at));
    at += 4;
    at += 2 + answer.readInt16BE(at);
    at += 4;
    at += 2 + Math.max(0, answer.readInt16BE(at));
  }
  return ids;
}
