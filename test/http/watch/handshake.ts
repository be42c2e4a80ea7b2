import { describe, expect, test } from 'vitest';

import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import { EVENTS, EVERYONE, readyOf, settle, useWatches, viewerOf, watchUrl } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { openRawConnection } from '#test/support/raw-connection.ts';

export function handshake(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  test('the first bytes come at once: a comment, and READY', async () => {
    const aborter = new AbortController();
    const token = await world.target.token(viewerOf(world));
    const response = await fetch(watchUrl(world.target.baseUrl), {
      headers: { Authorization: `Bearer ${token}` },
      signal: AbortSignal.any([aborter.signal, AbortSignal.timeout(1_000)]),
    });
    const reader = response.body?.getReader();
    const text = Buffer.from((await reader?.read())?.value ?? '').toString();
    aborter.abort();
    expect(text).toMatch(/^: ok\n\nretry: \d+\n\nevent: READY\n(?:id: .+\ndata: \{.+\}|data: \{.+\}\nid: .+)\n\n$/);
  });

  test('each stream tells its client another time to wait before it connects again: 0.5 to 3.5 s', async () => {
    const token = await world.target.token(viewerOf(world));
    const times: number[] = [];
    for (let n = 0; n < 10; n++) {
      const connection = await openRawConnection(world.target.baseUrl);
      connection.write(`GET ${EVENTS} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\n\r\n`);
      const text = await connection.until('event: READY');
      connection.close();
      times.push(Number(/^retry: (\d+)$/m.exec(text)?.[1]));
    }
    expect(Math.min(...times)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...times)).toBeLessThanOrEqual(3_500);
    expect(new Set(times).size).toBeGreaterThan(5);
  });

  test('the headers keep proxies from storing, changing and holding back the stream', async () => {
    const { headers } = await watches.open();
    expect(headers.get('content-type')).toBe('text/event-stream');
    expect(headers.get('cache-control')).toBe('no-cache, no-transform');
    expect(headers.get('x-accel-buffering')).toBe('no');
    expect(headers.get('content-length')).toBeNull();
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  describe('READY', () => {
    const cursor = expect.stringMatching(/^[\w-]{20,}$/);

    /** All that a viewer of one tenant may see. */
    const visible = (): string[] => [world.tenant, 'shared'].toSorted();

    test('grants a live watch its protocol, mode, tenants and cursor, which is also its id', async () => {
      for (const query of [{}, { from: 'now' }, { initial: 'false' }]) {
        const { data, id } = readyOf(await watches.open(query));
        expect(data).toEqual({ protocol: 1, mode: 'live', tenants: visible(), cursor });
        expect(id).toBe(data.cursor);
      }
    });

    test('grants a resumed watch the mode resume, with the cursor where it begins', async () => {
      const { id = '' } = readyOf(await watches.open());
      for (const [query, lastEventId] of [
        [{ from: 'earliest' }, undefined],
        [{ from: id }, undefined],
        [{}, id],
      ] as const) {
        const ready = readyOf(await watches.open(query, lastEventId === undefined ? {} : { lastEventId }));
        expect(ready.data).toEqual({ protocol: 1, mode: 'resume', tenants: visible(), cursor });
        expect(ready.id).toBe(ready.data.cursor);
      }
    });

    test('gives an initial watch no id before its initial events are over, so that a reconnect gets them again', async () => {
      await createWidget(world);
      await settle(world);
      const client = await watches.open({ initial: 'true' });
      const ready = readyOf(client);
      expect(ready.data).toEqual({ protocol: 1, mode: 'initial', tenants: visible(), cursor });
      expect(ready.id).toBeUndefined();
      const added = await client.next();
      expect([added.event, added.id]).toEqual(['ADDED', undefined]);
    });

    test('names an open set of tenants "*"', async () => {
      const { data } = readyOf(await watches.open({}, { grant: EVERYONE }));
      expect(data.tenants).toBe('*');
    });

    test('names the tenants that were asked for, of those that the caller may see', async () => {
      const { data } = readyOf(await watches.open({ tenants: world.tenant }, { grant: EVERYONE }));
      expect(data.tenants).toEqual([world.tenant]);
    });
  });
}
