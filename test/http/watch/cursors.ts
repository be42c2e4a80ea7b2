import { beforeAll, expect, test } from 'vitest';

import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import { createTenant, EVERYONE, expectFailure, readyOf, useWatches, viewerOf } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

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
      'A'.repeat(5000),
      Buffer.from('{"seq":0}').toString('base64url'),
      ...Array.from({ length: cursor.length }, (_, position) => replaced(position)),
    ];
    for (const from of forged) {
      const { status, body } = await watches.refused({ from, tenants: world.tenant });
      expect(status, from).toBe(400);
      expectFailure(body, 400, 'BadRequest', 'cursor is malformed or belongs to another request');
    }
  });

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
    for (const lastEventId of ['nonsense', cursor.slice(0, -1), replaced(10), 'A'.repeat(5000)]) {
      const { data } = await watches.refusedInStream({ tenants: world.tenant }, { lastEventId });
      expectFailure(data, 400, 'BadRequest', 'cursor is malformed');
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
