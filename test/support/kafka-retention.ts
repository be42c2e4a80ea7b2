/** Retention, at once and to the offset: what the brokers' own does to whole segments in its time. */

import { Kafka, logLevel } from 'kafkajs';

/** Removes the records before this offset, or all that there are. */
export async function deleteRecords(brokers: readonly string[], topic: string, before?: bigint): Promise<void> {
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const [partition] = await admin.fetchTopicOffsets(topic);
    const offset = before === undefined ? String(partition?.high) : String(before);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset }] });
  } finally {
    await admin.disconnect();
  }
}
