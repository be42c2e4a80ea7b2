import { beforeAll, describe, expect, test } from 'vitest';

import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import {
  createTenant,
  EVENTS,
  EVERYONE,
  expectFailure,
  readyOf,
  useWatches,
  viewerOf,
} from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { openRawConnection } from '#test/support/raw-connection.ts';

export function cursors(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  let cursor: string;

  beforeAll(async () => {
    const { body } = await world.viewer.get(world.widgets);
    ({ cursor } = body.metadata);
  });

  function replaced(position: number): string {
    return `${cursor.slice(0, position)}${cursor[position] === 'A' ? 'B' : 'A'}${cursor.slice(position + 1)}`;
  }

  test('that is not the one that was given is malformed, wherever it differs', async () => {
    const forged = [
      'nonsense',
      'AAAA',
      '0',
      '-1',
      cursor.slice(1),
      cursor.slice(0, -1),
      cursor.slice(0, -4),
      cursor.slice(0, 20),
      `${cursor}A`,
      `${cursor}=`,
      ` ${cursor}`,
      cursor + cursor,
      'A'.repeat(4096),
      Buffer.from('{"seq":0}').toString('base64url'),
      ...Array.from({ length: cursor.length }, (_, position) => replaced(position)),
    ];
    for (const from of forged) {
      const { status, body } = await watches.refused({ from, tenants: world.tenant });
      expect(status, from).toBe(400);
      expectFailure(body, 400, 'BadRequest', 'cursor is malformed or belongs to another request');
    }
  });

  test('that is longer than any is refused by its length', async () => {
    const { body } = await watches.refused({ from: 'A'.repeat(4097), tenants: world.tenant });
    expectFailure(body, 400, 'BadRequest', 'cursor has 4097 characters, and none has more than 4096');
  });

  describe('cut off or with one bit changed', () => {
    /** The bytes, and the answer that they may have: an older key's id says that this key was retired. */
    function hostile(): readonly { readonly text: string; readonly codes: readonly number[] }[] {
      const bytes = Buffer.from(cursor, 'base64url');
      const cut = Array.from({ length: cursor.length - 1 }, (_, index) => cursor.slice(0, index + 1));
      const shorter = Array.from(bytes.keys()).slice(1);
      const flipped = Array.from({ length: bytes.length * 8 }, (_, bit) => {
        const copy = Buffer.from(bytes);
        copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        return { text: copy.toString('base64url'), codes: bit < 8 ? [400, 410] : [400] };
      });
      return [
        ...cut.map((text) => ({ text, codes: [400] })),
        ...shorter.map((length) => ({ text: bytes.subarray(0, length).toString('base64url'), codes: [400] })),
        ...flipped,
      ];
    }

    test.each(['query', 'header'])('is refused wherever it was, in the %s, and nothing else happens', async (place) => {
      const left = hostile().values();
      await Promise.all(Array.from({ length: 8 }, refuseEach));
      expect(readyOf(await watches.open({ tenants: world.tenant, from: cursor }))).toBeDefined();

      async function refuseEach(): Promise<void> {
        for (const { text, codes } of left) {
          const body = await refusalOf(place, text);
          expect(codes, text).toContain(body.code);
          expectFailure(body, body.code, body.code === 400 ? 'BadRequest' : 'CursorKeyRetired');
        }
      }
    });
  });

  test.each(['query', 'header'])('of 1 MiB in the %s is refused before it is looked at', async (place) => {
    const megabyte = 'A'.repeat(1024 * 1024);
    const connection = await openRawConnection(world.target.baseUrl);
    const [query, header] = place === 'query' ? [`?from=${megabyte}`, 'X-Other'] : ['', 'Last-Event-ID'];
    const token = await world.target.token(viewerOf(world));
    connection.write(
      `GET ${EVENTS}${query} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\n${header}: ${place === 'query' ? '' : megabyte}\r\n\r\n`,
    );
    await connection.until(/^HTTP\/1\.1 431 /);
    await connection.until(/"reason":"RequestHeaderFieldsTooLarge".*"code":431\}$/);
    await connection.ended;
    expect(readyOf(await watches.open())).toBeDefined();
  });

  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  async function refusalOf(place: string, text: string): Promise<any> {
    const query = { tenants: world.tenant };
    if (place === 'query') return (await watches.refused({ ...query, from: text })).body;
    return (await watches.refusedInStream(query, { lastEventId: text })).data;
  }

  test('of other tenants is malformed too: it tells nobody anything', async () => {
    const { name, widgets } = await createTenant(world);
    const wider = (await world.admin.get('/apis/example.dev/v1/widgets')).body.metadata.cursor;
    const foreign = (await world.admin.get(widgets)).body.metadata.cursor;
    for (const [from, query, grant] of [
      [foreign, { tenants: world.tenant }, viewerOf(world)],
      [wider, { tenants: world.tenant }, viewerOf(world)],
      [wider, {}, viewerOf(world)],
      [cursor, {}, viewerOf(world)],
      [cursor, { tenants: name }, EVERYONE],
      [cursor, {}, EVERYONE],
      [cursor, { tenants: `${world.tenant},${name}` }, EVERYONE],
      [wider, { tenants: world.tenant }, EVERYONE],
    ] as const) {
      const { status, body } = await watches.refused({ ...query, from }, { grant });
      expect(status).toBe(400);
      expectFailure(body, 400, 'BadRequest', 'cursor is malformed or belongs to another request');
    }
    expect(readyOf(await watches.open({ tenants: world.tenant, from: cursor }, { grant: EVERYONE }))).toBeDefined();
  });

  test('that came by Last-Event-ID is refused in the stream, with an empty id, and the stream ends', async () => {
    for (const [lastEventId, words] of [
      ['nonsense', 'cursor is malformed'],
      [cursor.slice(0, -1), 'cursor is malformed'],
      [replaced(10), 'cursor is malformed'],
      ['A'.repeat(5000), 'cursor has 5000 characters'],
    ] as const) {
      const { data } = await watches.refusedInStream({ tenants: world.tenant }, { lastEventId });
      expectFailure(data, 400, 'BadRequest', words);
    }
  });

  test('given as a continue token, or the reverse, is malformed', async () => {
    await createWidget(world);
    await createWidget(world);
    const { metadata } = (await world.viewer.get(`${world.widgets}?limit=1`)).body;
    expectFailure((await watches.refused({ tenants: world.tenant, from: metadata.continue })).body, 400, 'BadRequest');
    const answer = await world.viewer.get(`${world.widgets}?continue=${encodeURIComponent(cursor)}`);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
  });
}
