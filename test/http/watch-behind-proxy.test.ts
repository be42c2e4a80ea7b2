/** Watches as browsers have them: HTTP/2 over TLS to a proxy, many on one connection; and HTTP/1.1 over TLS beside. */

import { get } from 'node:https';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { createParser } from 'eventsource-parser';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import { EVENTS, viewerOf } from '#test/http/watch/world.ts';
import { createChanges } from '#test/support/changes.ts';
import { useOwnInstance } from '#test/support/own-instance.ts';
import { startTlsProxy, type TlsProxy } from '#test/support/tls-proxy.ts';

const WATCHES = 200;

const instance = useOwnInstance();
const world = useWorld(instance.open);
let proxy: TlsProxy;
let token: string;
let session: ClientHttp2Session;

beforeAll(async () => {
  proxy = await startTlsProxy((await instance.open()).baseUrl);
  token = await world.target.token(viewerOf(world));
  session = connect(proxy.url, { ca: proxy.certificate });
});

afterAll(async () => {
  session.destroy();
  await proxy.stop();
});

interface Watch {
  readonly stream: ClientHttp2Stream;
  /** Uids of the objects of its events. */
  readonly uids: readonly string[];
  /** Waits until that many events, READY among them, have come. */
  until(events: number): Promise<void>;
}

function watch(): Watch {
  const stream = session.request({ ':path': EVENTS, authorization: `Bearer ${token}`, accept: 'text/event-stream' });
  const uids: string[] = [];
  let events = 0;
  const changes = createChanges();
  const parser = createParser({
    onEvent({ event, data }) {
      if (event === 'BOOKMARK') return;
      events += 1;
      if (event !== 'READY') uids.push((JSON.parse(data) as { uid: string }).uid);
      changes.tell();
    },
  });
  stream.setEncoding('utf8').on('data', (text: string) => parser.feed(text));
  stream.on('error', () => undefined);
  return {
    stream,
    uids,
    async until(count) {
      while (events < count) {
        if (stream.closed) throw new Error(`the stream ended with ${events} of ${count} events`);
        await changes.next(10_000);
      }
    },
  };
}

async function openStreams(): Promise<number> {
  const text = await (await fetch(`${(await instance.open()).opsUrl}/metrics`)).text();
  return Number(/^plumbline_watch_active_streams\{mode="broadcast"\} (\d+)$/m.exec(text)?.[1]);
}

test('many watches on one HTTP/2 connection get the same events, one that reads none holds up no other, and each ends alone', async () => {
  const watches = Array.from({ length: WATCHES }, watch);
  await Promise.all(watches.map(({ until }) => until(1)));
  expect(await openStreams()).toBe(WATCHES);
  const [stalled, left, ...others] = watches;
  stalled?.stream.pause();
  left?.stream.close();
  await expect.poll(openStreams, { timeout: 10_000 }).toBe(WATCHES - 1);
  // More than the stalled one's window, 64 KiB.
  const uids: string[] = [];
  for (let n = 0; n < 6; n++) {
    const { metadata } = await createWidget(world, { annotations: { pad: 'x'.repeat(50_000) } });
    uids.push(metadata.uid);
  }
  await Promise.all(others.map(({ until }) => until(1 + uids.length)));
  for (const other of others) expect(other.uids).toEqual(uids);
  expect(stalled?.uids.length).toBeLessThan(uids.length);
  stalled?.stream.resume();
  await stalled?.until(1 + uids.length);
  expect(stalled?.uids).toEqual(uids);
  for (const { stream } of watches) stream.close();
  await expect.poll(openStreams, { timeout: 10_000 }).toBe(0);
});

test('a watch over TLS and HTTP/1.1 gets its events as they come', async () => {
  let text = '';
  const changes = createChanges();
  const request = get(
    `${proxy.url}${EVENTS}`,
    { ca: proxy.certificate, headers: { authorization: `Bearer ${token}` } },
    (answer) => {
      expect([answer.httpVersion, answer.headers['content-type']]).toEqual(['1.1', 'text/event-stream']);
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        changes.tell();
      });
      answer.on('error', () => undefined);
    },
  );
  const untilHas = async (part: string): Promise<void> => {
    while (!text.includes(part)) await changes.next(10_000);
  };
  await untilHas('event: READY');
  for (let n = 0; n < 3; n++) await untilHas((await createWidget(world)).metadata.uid);
  request.destroy();
});
