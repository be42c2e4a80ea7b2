/** The controller of tenants dies at every call, in turn, and each of its calls fails: it ends the same. */

import { afterAll, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { postgresTenantStreams } from '#adapters/postgres/tenant-streams.ts';
import type { TenantStreams } from '#core/ports/tenant-streams.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { tenants } from '#functions/reconcile/kinds/tenant.ts';
import { openTestKit } from '#infra/testkit/index.ts';

/** The kit's database is known once the kit is open. */
const later = (): TenantStreams => postgresTenantStreams(sql, undefined);
const streams: TenantStreams = {
  find: (tenant) => later().find(tenant),
  objects: (tenant) => later().objects(tenant),
  close: (tenant) => later().close(tenant),
  async drain(stream, purge) {
    // The publisher, which is at work all the time.
    await publishOnce({ outbox: postgresOutbox(sql) });
    return later().drain(stream, purge);
  },
  removeEvents: (stream) => later().removeEvents(stream),
  markRemoved: (stream) => later().markRemoved(stream),
};

const kit = await openTestKit({
  kinds: (external) => [tenants({ streams: external(streams, 'streams'), graceMs: 0 })],
});
const sql: Sql = connect(kit.databaseUrl, { applicationName: 'test' });
await postgresRetention(sql).prepare();
// The tenants that are always there are looked at for the first time.
await kit.settle();
afterAll(async () => {
  await sql.end({ timeout: 1 });
  await kit.close();
});

const scenario = {
  steps: [
    () => kit.create('Tenant', 'globex', { displayName: 'Globex' }),
    () => kit.create('ManagedDatabase', 'orders', {}, { tenant: 'globex' }),
    () => kit.update('Tenant', 'globex', { displayName: 'Globex Corporation' }),
    () => kit.delete('Tenant', 'globex'),
    () => kit.delete('ManagedDatabase', 'orders', { tenant: 'globex' }),
  ],
  /** Of the newest incarnation: whether it takes events, and whether any are left. */
  async state() {
    const [row] = await sql<{ state: object | null }[]>`
      select jsonb_build_object('isOpen', s.closed_at is null, 'isRemoved', s.removed_at is not null,
        'hasEvents', exists (select from plumbline.event_log e where e.stream = s.id)
          or exists (select from plumbline.outbox o where o.stream = s.id)) as state
      from plumbline.stream s where s.tenant = 'globex' order by s.id desc limit 1`;
    return { globex: row?.state ?? { isOpen: false, isRemoved: true, hasEvents: false } };
  },
};

test('a tenant comes and goes the same wherever its controller dies', async () => {
  const { calls } = await kit.crashEverywhere(scenario);
  expect(calls).toContain('streams.markRemoved');
});

test('no tenant is called ready, and none goes, while its stream cannot be read or changed', () =>
  kit.faultEverywhere(scenario));
