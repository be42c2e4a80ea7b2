import { describe, expect, test } from 'vitest';

import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import { EVENTS, passMark, useWatches, viewerOf } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { openRawConnection, type RawConnection } from '#test/support/raw-connection.ts';

export function connections(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  async function connect(): Promise<RawConnection> {
    return openRawConnection(world.target.baseUrl);
  }

  async function request(version: string, path: string, headers: readonly string[] = []): Promise<string> {
    const token = await world.target.token(viewerOf(world));
    const lines = [`GET ${path} HTTP/${version}`, 'Host: test', `Authorization: Bearer ${token}`, ...headers];
    return `${lines.join('\r\n')}\r\n\r\n`;
  }

  test('HTTP/1.0 clients get an answer without chunks, which ends with the connection', async () => {
    const connection = await connect();
    connection.write(await request('1.0', EVENTS));
    const head = await connection.until('\n\nevent: READY\n');
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(head.toLowerCase()).not.toContain('transfer-encoding');
    const widgets = [await createWidget(world), await createWidget(world), await createWidget(world)];
    for (const { metadata } of widgets) await connection.until(`"uid":"${metadata.uid}"`);
    // Nothing but fields and empty lines: no size of a chunk among them.
    const [, body = ''] = connection.text().split('\r\n\r\n');
    expect(body.split('\n').filter((line) => !/^(?:$|: ok$|retry: |event: |id: |data: )/.test(line))).toEqual([]);
    connection.close();
  });

  test('HTTP/1.0 clients are refused by the end of the connection', async () => {
    const connection = await connect();
    connection.write(await request('1.0', EVENTS, ['Last-Event-ID: nonsense']));
    await connection.ended;
    expect(connection.text()).toMatch(/event: ERROR\nid: \ndata: \{.*"code":400.*\}\n\n$/);
  });

  describe('a connection that is kept alive', () => {
    test('takes the next request when a stream on it has ended', async () => {
      const connection = await connect();
      for (let round = 1; round <= 3; round++) {
        connection.write(await request('1.1', EVENTS, ['Last-Event-ID: nonsense']));
        await connection.until('\r\n0\r\n\r\n');
        connection.write(await request('1.1', world.widgets));
        await connection.until(/\r\n\r\n\{"apiVersion":"example\.dev\/v1","kind":"WidgetList".*\]\}/);
      }
      connection.write(await request('1.1', EVENTS));
      await connection.until('event: READY\n');
      const { metadata } = await createWidget(world);
      await connection.until(`"uid":"${metadata.uid}"`);
      connection.close();
    });

    test('carries a stream that was asked for behind another request, and behind a stream that ends', async () => {
      const connection = await connect();
      const refused = await request('1.1', EVENTS, ['Last-Event-ID: nonsense']);
      connection.write((await request('1.1', world.widgets)) + refused + (await request('1.1', EVENTS)));
      await connection.until('event: READY\n');
      const answers = connection.text();
      expect(answers.indexOf('WidgetList')).toBeLessThan(answers.indexOf('event: ERROR'));
      const widgets = [await createWidget(world), await createWidget(world)];
      for (const { metadata } of widgets) await connection.until(`"uid":"${metadata.uid}"`);
      connection.close();
    });
  });

  test('a client that sends its request a byte at a time, and one that goes at once, do no harm', async () => {
    const slow = await connect();
    for (const byte of await request('1.1', EVENTS)) slow.write(byte);
    await slow.until('event: READY\n');
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const hasty = await connect();
        hasty.write(await request('1.1', `${EVENTS}?initial=true`));
        hasty.destroy();
      }),
    );
    const client = await watches.open();
    await passMark(world, client);
    slow.close();
  });

  test('what is no request is refused as all that is wrong, in words', async () => {
    const connection = await connect();
    connection.write('nonsense\r\n\r\n');
    await connection.ended;
    expect(connection.text()).toMatch(/^HTTP\/1\.1 400 [^]*\r\n\r\n\{"kind":"Status",.*"the request is no HTTP\/1\.1"/);
  });

  describe('a client that sends data on its open stream', () => {
    async function streaming(headers: readonly string[] = []): Promise<RawConnection> {
      const connection = await connect();
      connection.write(await request('1.1', EVENTS, headers));
      await connection.until('event: READY\n');
      return connection;
    }

    test.each([
      ['that is no request', 'nonsense\r\n\r\n'],
      ['without an end', 'x'.repeat(1_000_000)],
      ['of zeros', '\0'.repeat(100_000)],
    ])('%s loses its connection at most, and nobody else notices', async (_, data) => {
      const client = await watches.open();
      const connection = await streaming();
      connection.write(data);
      await passMark(world, client);
      connection.close();
      await connection.ended;
      expect(connection.text().match(/HTTP\/1\.1/g), 'no answer in the middle of the events').toHaveLength(1);
      await passMark(world, client);
      expect(client.isEnded).toBe(false);
    });

    test('that is the body of its request goes on getting its events', async () => {
      const connection = await streaming(['Content-Length: 100000000']);
      for (let round = 0; round < 20; round++) connection.write('x'.repeat(100_000));
      const { metadata } = await createWidget(world);
      await connection.until(`"uid":"${metadata.uid}"`);
      connection.destroy();
      await connection.ended;
    });

    test('that are more requests has its events, and those answers when the stream ends', async () => {
      const connection = await streaming();
      for (let count = 0; count < 100; count++) connection.write(await request('1.1', world.widgets));
      const { metadata } = await createWidget(world);
      await connection.until(`"uid":"${metadata.uid}"`);
      expect(connection.text()).not.toContain('WidgetList');
      connection.destroy();
      await connection.ended;
    });
  });

  test('a hundred streams of one caller get the same events', async () => {
    const clients = await Promise.all(Array.from({ length: 100 }, () => watches.open()));
    const widgets = [await createWidget(world), await createWidget(world), await createWidget(world)];
    for (const client of clients) {
      for (const { metadata } of widgets) expect((await client.next()).data.uid).toBe(metadata.uid);
    }
  });
}
