import { eventLogContract } from '#test/contract/event-log.contract.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';
import { connect } from '#adapters/postgres/client.ts';
import { postgresEventLog } from '#adapters/postgres/event-log.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { postgresOutbox } from '#adapters/postgres/outbox.ts';
import { postgresRetention } from '#adapters/postgres/retention.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { tenantKind } from '#core/kinds/tenant.ts';
import kinds from '#test/http/kinds.ts';

eventLogContract('PostgreSQL', async () => {
  const database = await createTestDatabase();
  await registerKinds(database.url, [tenantKind, ...kinds]);
  const admin = connect(database.url, { applicationName: 'contract' });
  const sql = connect(database.url, { applicationName: 'contract log', role: 'plumbline_worker' });
  const outbox = postgresOutbox(sql);
  let tenants = 0;
  let objects = 0;

  return {
    log: postgresEventLog(sql),

    async newStream() {
      const tenant = `t${(tenants += 1)}`;
      await admin`insert into plumbline.resource (tenant, api_group, kind, name)
        values ('system', 'plumbline.dev', 'Tenant', ${tenant})`;
      const [row] = await admin<{ id: bigint }[]>`select id from plumbline.stream where tenant = ${tenant}`;
      if (!row) throw new Error('the tenant has no stream');
      return row.id;
    },

    async append(stream, count, documentBytes = 100) {
      objects += count;
      await admin`
        insert into plumbline.resource (tenant, api_group, kind, name, spec)
        select s.tenant, 'example.dev', 'Widget', 'w' || n, jsonb_build_object('pad', repeat('x', ${documentBytes}::int))
        from plumbline.stream s, generate_series(${objects - count + 1}::int, ${objects}::int) n
        where s.id = ${String(stream)}::bigint order by n`;
      await publishOnce({ outbox });
    },

    async expireAll() {
      // Partitions go by whole days: far enough in the future, all of them are old.
      await postgresRetention(admin).expire(-10 * 86_400_000);
    },

    async close() {
      await sql.end({ timeout: 1 });
      await admin.end({ timeout: 1 });
      await database.drop();
    },
  };
});
