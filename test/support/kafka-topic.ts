/**
 * Judges what publishing has left in Kafka: each topic is read raw, and looked at as a reader does that keeps the first
 * record of each number. What PostgreSQL says about it must be true.
 */

import { fixKafkajs } from '#adapters/kafka/fixes/kafkajs-fixes.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { readTopic, type WrittenRecord } from '#test/support/kafka-events.ts';
import type { ReceivedEvent, Run } from '#test/property/ordering-checker.ts';

/** A stream's current topic, and how far PostgreSQL says that it reaches. */
export interface StreamTopic {
  readonly tenant: string;
  readonly stream: bigint;
  readonly topic: string;
  /** The number of the first event in this topic. */
  readonly firstSeq: bigint;
  readonly lastSeq: bigint;
  readonly lastPosition: bigint;
}

export interface TopicVerdict extends StreamTopic {
  /** What a reader gets. */
  readonly events: readonly WrittenRecord[];
  /** Records that it drops, since it had their number already. */
  readonly repeated: number;
  /** Sentences; none in a log that is right. */
  readonly violations: readonly string[];
}

export interface LogVerdict {
  readonly topics: readonly TopicVerdict[];
  readonly repeated: number;
  readonly violations: readonly string[];
  /** All topics, as if one watcher had seen them, for the ordering checker. */
  readonly run: Run;
}

/** Of these tenants, or of all whose events were published. */
export async function judgeLog(sql: Sql, brokers: readonly string[], tenants?: readonly string[]): Promise<LogVerdict> {
  // Its timers would not let the process rest.
  fixKafkajs();
  const topics: TopicVerdict[] = [];
  for (const stream of await streamTopics(sql, tenants)) {
    const records = await readTopic(brokers, stream.topic);
    const verdict = judgeTopic(stream, records);
    const violations = [...verdict.violations, ...(await indexViolations(sql, stream, records))];
    topics.push({ ...verdict, violations: violations.map((sentence) => `${stream.topic}: ${sentence}`) });
  }
  return {
    topics,
    repeated: topics.reduce((sum, { repeated }) => sum + repeated, 0),
    violations: topics.flatMap(({ violations }) => violations),
    run: { name: 'the topics', tenants: tenants ?? '*', start: 'origin', events: topics.flatMap(eventsOf) },
  };
}

export async function streamTopics(sql: Sql, tenants?: readonly string[]): Promise<readonly StreamTopic[]> {
  return sql<StreamTopic[]>`
    select s.tenant, s.id as stream, t.name as topic, t.first_seq as "firstSeq", f.last_seq as "lastSeq",
      f.last_position as "lastPosition"
    from plumbline.stream s join plumbline.frontier f on f.stream = s.id join plumbline.topic t on t.name = f.topic
    where t.ready_at is not null and s.tenant = any (coalesce(${tenants ? [...tenants] : null}::text[], array[s.tenant]))
    order by s.id`;
}

/** Dense numbers from the topic's first one on, each of them one event, and none of another stream. */
export function judgeTopic(stream: StreamTopic, records: readonly WrittenRecord[]): TopicVerdict {
  const violations: string[] = [];
  const events: WrittenRecord[] = [];
  const idOf = new Map<number, string>();
  let last = Number(stream.firstSeq) - 1;
  for (const record of records) {
    const { offset, seq, id } = record;
    const known = idOf.get(seq);
    if (record.stream !== String(stream.stream)) violations.push(`offset ${offset} is of stream ${record.stream}`);
    else if (known !== undefined && known !== id) violations.push(`seq ${seq} is ${known} and, at ${offset}, ${id}`);
    else if (seq > last + 1) violations.push(`seq ${seq} at offset ${offset} comes right behind seq ${last}`);
    idOf.set(seq, known ?? id);
    if (seq <= last) continue;
    last = seq;
    events.push(record);
  }
  if (BigInt(last) < stream.lastSeq) violations.push(`it ends at seq ${last}, and the frontier is ${stream.lastSeq}`);
  const ids = new Set(events.map(({ id }) => id));
  if (ids.size < events.length) violations.push(`${events.length - ids.size} events have several numbers`);
  return { ...stream, events, repeated: records.length - events.length, violations };
}

interface BatchRow {
  readonly firstSeq: bigint;
  readonly firstPosition: bigint;
  readonly count: number;
  readonly resourceVersions: readonly (bigint | string)[];
}

/** The frontier and every batch of the index name records that are there, with their numbers and versions. */
async function indexViolations(
  sql: Sql,
  { stream, firstSeq, lastSeq, lastPosition }: StreamTopic,
  records: readonly WrittenRecord[],
): Promise<readonly string[]> {
  const violations: string[] = [];
  const byOffset = new Map(records.map((record) => [record.offset, record]));
  const batches = await sql<BatchRow[]>`
    select first_seq as "firstSeq", first_position as "firstPosition", count, resource_versions as "resourceVersions"
    from plumbline.batch where stream = ${stream} and first_seq >= ${firstSeq} order by first_seq`;
  let next = firstSeq;
  for (const { firstSeq: seq, firstPosition, count, resourceVersions } of batches) {
    if (seq !== next) violations.push(`a batch from seq ${seq} on follows seq ${next - 1n} in the index`);
    next = seq + BigInt(count);
    for (const [index, version] of resourceVersions.entries()) {
      const record = byOffset.get(firstPosition + BigInt(index));
      if (record?.seq === Number(seq) + index && header(record, 'ce_resourceversion') === String(version)) continue;
      violations.push(
        `the index has seq ${seq + BigInt(index)} at ${firstPosition + BigInt(index)}, and it is not there`,
      );
    }
  }
  if (next !== lastSeq + 1n) violations.push(`the index ends at seq ${next - 1n}, and the frontier is ${lastSeq}`);
  if (lastSeq >= firstSeq && byOffset.get(lastPosition)?.seq !== Number(lastSeq))
    violations.push(`the frontier has seq ${lastSeq} at ${lastPosition}, and it is not there`);
  return violations;
}

function eventsOf({ tenant, events }: TopicVerdict): ReceivedEvent[] {
  return events.map((record) => ({
    tenant,
    seq: BigInt(record.seq),
    id: record.id,
    uid: header(record, 'ce_uid'),
    type: header(record, 'ce_type').replace('dev.plumbline.', '').toUpperCase() as ReceivedEvent['type'],
    resourceVersion: BigInt(header(record, 'ce_resourceversion')),
  }));
}

function header({ headers }: WrittenRecord, name: string): string {
  return String(headers[name]);
}
