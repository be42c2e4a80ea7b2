import { kafkaEventLog } from '#adapters/kafka/event-log.ts';
import { connect } from '#adapters/postgres/client.ts';
import { postgresLogIndex } from '#adapters/postgres/log-index.ts';
import { keepTopics } from '#functions/publish/keep-topics.ts';
import { publishOnce } from '#functions/publish/publish-once.ts';
import { eventLogContract } from '#test/contract/event-log.contract.ts';
import { settingsFor } from '#test/support/kafka-events.ts';
import { kafkaPublishing, prepareKafkaDatabase } from '#test/support/kafka-publishing.ts';
import { deleteRecords } from '#test/support/kafka-retention.ts';
import { streamTopics } from '#test/support/kafka-topic.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

describeKafka('on Apache Kafka', () => {
  eventLogContract('Kafka', async () => {
    const brokers = await kafkaBrokers();
    const database = await prepareKafkaDatabase([], brokers);
    const sql = connect(database.url, { applicationName: 'contract log', role: 'plumbline_worker' });
    const log = kafkaEventLog({ settings: settingsFor(brokers), logger: silentLogger, index: postgresLogIndex(sql) });
    const { outbox, keeping, close } = kafkaPublishing({ sql, brokers });
    let tenants = 0;
    let objects = 0;

    return {
      log,

      async newStream() {
        const tenant = `t${(tenants += 1)}`;
        await createTenants(database.sql, [tenant]);
        await keepTopics(keeping, false);
        const [stream] = await streamTopics(database.sql, [tenant]);
        if (!stream) throw new Error('the tenant has no topic');
        return stream.stream;
      },

      async append(stream, count, documentBytes = 100) {
        objects += count;
        await database.sql`
          insert into plumbline.resource (tenant, api_group, kind, name, spec)
          select s.tenant, 'example.dev', 'Widget', 'w' || n, jsonb_build_object('pad', repeat('x', ${documentBytes}::int))
          from plumbline.stream s, generate_series(${objects - count + 1}::int, ${objects}::int) n
          where s.id = ${String(stream)}::bigint order by n`;
        await publishOnce({ outbox });
      },

      async expireAll() {
        for (const { topic } of await streamTopics(database.sql)) await deleteRecords(brokers, topic);
      },

      async close() {
        await Promise.all([log.close(), close()]);
        await sql.end({ timeout: 1 });
        await database.close();
      },
    };
  });
});
