import { expect, test } from 'vitest';

import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { changesOf, EVERYONE, passMark, readyOf, useWatches } from '#test/http/watch/world.ts';
import type { SseClient } from '#test/support/sse-client.ts';
import type { OpenTarget } from '#test/http/target.ts';

const WIDGETS = '/apis/example.dev/v1/namespaces/shared/widgets';

export function sharedTenant(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  /** A change in the shared tenant; gives its uid. */
  async function share(): Promise<string> {
    const { body } = await world.admin.post(WIDGETS, { metadata: { name: uniqueName('common') } });
    return body.metadata.uid;
  }

  function sees(client: SseClient, uid: string): boolean {
    return changesOf(client).some(({ data }) => data.uid === uid);
  }

  test('is part of every watch that names no tenants, beside those of the token', async () => {
    const nobody = { roles: ['viewer'], tenants: [] } as const;
    const clients = [await watches.open(), await watches.open({}, { grant: nobody })];
    const uid = await share();
    for (const client of clients) {
      const { data } = await client.waitFor((event) => event.data.uid === uid);
      expect([data.tenant, data.source]).toEqual(['shared', '/plumbline/shared']);
    }
    const { metadata } = await createWidget(world);
    await clients[0]?.waitFor(({ data }) => data.uid === metadata.uid);
    const last = await share();
    await clients[1]?.waitFor(({ data }) => data.uid === last);
    expect(clients[1] && changesOf(clients[1]).every(({ data }) => data.tenant === 'shared')).toBe(true);
  });

  test('is not part of a watch that names others, and all of one that names it', async () => {
    const own = await watches.open({ tenants: world.tenant });
    const common = await watches.open({ tenants: 'shared' });
    const uid = await share();
    await common.waitFor(({ data }) => data.uid === uid);
    await passMark(world, own);
    expect(sees(own, uid)).toBe(false);
    expect([readyOf(own).data.tenants, readyOf(common).data.tenants]).toEqual([[world.tenant], ['shared']]);
    expect(new Set(changesOf(common).map(({ data }) => data.tenant))).toEqual(new Set(['shared']));
  });

  test('is shown as initial state too', async () => {
    const uid = await share();
    // The state is that at the log's head, which this list has waited for.
    await world.viewer.get('/apis/example.dev/v1/widgets?limit=1');
    const client = await watches.open({ initial: 'true' });
    await client.waitFor(({ event }) => event === 'BOOKMARK');
    expect(sees(client, uid)).toBe(true);
  });

  test('has a cursor of its own scope: one over all that a caller sees is not one of its tenants alone', async () => {
    const everything = (await world.viewer.get('/apis/example.dev/v1/widgets')).body.metadata.cursor;
    const own = (await world.viewer.get(world.widgets)).body.metadata.cursor;
    const uid = await share();
    const resumed = await watches.open({ from: everything });
    await resumed.waitFor(({ data }) => data.uid === uid);
    const named = await watches.open({ from: everything, tenants: `shared,${world.tenant}` });
    await named.waitFor(({ data }) => data.uid === uid);
    expect((await watches.refused({ from: everything, tenants: world.tenant })).status).toBe(400);
    expect((await watches.refused({ from: own })).status).toBe(400);
    expect((await watches.refused({ from: everything }, { grant: EVERYONE })).status).toBe(400);
  });

  test('named by a token or not, it is the same view, with the same cursors', async () => {
    const { id = '' } = readyOf(await watches.open());
    const uid = await share();
    const member = { roles: ['viewer'], tenants: ['shared', world.tenant] } as const;
    const client = await watches.open({ from: id }, { grant: member });
    await client.waitFor(({ data }) => data.uid === uid);
  });
}
