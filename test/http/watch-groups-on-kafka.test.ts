/** What groups are told of events that the brokers have removed. */

import { expect, test } from 'vitest';

import { postgresLogIndex } from '#adapters/postgres/log-index.ts';
import { uniqueName } from '#test/http/resource-api/world.ts';
import { lostEvents } from '#test/http/watch-groups/lost-events.ts';
import { useGroups } from '#test/http/watch-groups/world.ts';
import { deleteRecords } from '#test/support/kafka-retention.ts';
import { describeKafka, kafkaBrokers } from '#test/support/kafka.ts';
import { untilPublished } from '#test/support/old-events.ts';
import { useOwnInstance } from '#test/support/own-instance.ts';

describeKafka('groups over a log in Kafka', () => {
  const instance = useOwnInstance(async () => ({
    EVENT_LOG: 'kafka',
    KAFKA_BROKERS: (await kafkaBrokers()).join(','),
  }));
  const world = useGroups(instance.open);

  // The first test: where the log begins was not asked a moment ago.
  test('a new group asks the brokers where it begins: what they removed before is no loss to it', async () => {
    await world.write('removed', 2);
    await remove(world.tenant, 1);
    const client = await world.join(uniqueName('new'), { tenants: world.tenant });
    expect((await client.next()).data).toMatchObject({ seq: '2', attempt: 1 });
  });

  lostEvents(world, async (tenant, lastSeq) => {
    const topic = await remove(tenant, lastSeq);
    await postgresLogIndex(instance.sql).advanceStart(topic, BigInt(lastSeq));
  });

  /** The topic's first event lies at 0. */
  async function remove(tenant: string, lastSeq: number): Promise<string> {
    await untilPublished(instance.sql, tenant, lastSeq);
    const [row] = await instance.sql<{ topic: string }[]>`
      select f.topic from plumbline.frontier f join plumbline.stream s on s.id = f.stream where s.tenant = ${tenant}`;
    if (!row) throw new Error(`${tenant} has no topic`);
    await deleteRecords(await kafkaBrokers(), row.topic, BigInt(lastSeq));
    return row.topic;
  }
});
