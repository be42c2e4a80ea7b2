/** Tenants whose events go to Kafka under a steady load, and what can be seen of them. */

import { postgresTenantStreams } from '#adapters/postgres/tenant-streams.ts';
import { streamReadiness } from '#functions/reconcile/kinds/stream-readiness.ts';
import { expect, vi } from 'vitest';

import { type SteadyWriter, startSteadyWriter } from '#test/fault/steady-writer.ts';
import type { WrittenRecord } from '#test/support/kafka-events.ts';
import { judgeLog, type StreamTopic, streamTopics, type TopicVerdict } from '#test/support/kafka-topic.ts';
import type { PreparedDatabase } from '#test/support/prepared-database.ts';

export interface KafkaTenant {
  readonly tenant: string;
  readonly writer: SteadyWriter;
  /** Its current one. */
  topic(): Promise<StreamTopic>;
  /** The first objects, this many, are written and published; and the large one. */
  untilPublished(objects: number, timeoutMs?: number): Promise<void>;
  /** All that was written is in the current topic from this object on, and all that is said about it is true. */
  expectWhole(firstObject?: number): Promise<TopicVerdict>;
  /** Makes or changes an object that is larger than the others. Returns its uid. */
  writeLarge(characters: number): Promise<string>;
  /** What the Tenant tells of its stream. */
  stream(): Promise<{ readonly topic: string | null; readonly status: string; readonly reason: string }>;
}

export interface KafkaTenantOptions {
  readonly database: PreparedDatabase;
  readonly brokers: readonly string[];
  readonly tenant: string;
  readonly pauseMs: number;
}

/** Its writer writes at once. */
export function startKafkaTenant({ database, brokers, tenant, pauseMs }: KafkaTenantOptions): KafkaTenant {
  const { sql } = database;
  const writer = startSteadyWriter({ sql, tenant, pauseMs });
  return { tenant, writer, topic, untilPublished, expectWhole, writeLarge, stream };

  async function topic(): Promise<StreamTopic> {
    const [found] = await streamTopics(sql, [tenant]);
    if (!found) throw new Error(`tenant ${tenant} has no topic`);
    return found;
  }

  async function untilPublished(objects: number, timeoutMs = 30_000): Promise<void> {
    await vi.waitFor(
      async () => {
        expect(writer.count).toBeGreaterThanOrEqual(objects);
        const [row] = await sql<{ pending: bigint }[]>`select count(*) as pending from plumbline.outbox
          where tenant = ${tenant} and (name = 'large' or substr(name, 2)::int < ${objects})`;
        expect(row?.pending, `records of ${tenant} that are not published`).toBe(0n);
      },
      { timeout: timeoutMs, interval: 50 },
    );
  }

  async function expectWhole(firstObject = 0): Promise<TopicVerdict> {
    const { topics } = await judgeLog(sql, brokers, [tenant]);
    const [verdict] = topics;
    expect(verdict?.violations).toEqual([]);
    const objects = verdict?.events.map(objectNumber).filter((number) => !Number.isNaN(number));
    expect(objects).toEqual(Array.from({ length: writer.count - firstObject }, (_, n) => firstObject + n));
    return verdict!;
  }

  async function writeLarge(characters: number): Promise<string> {
    const [row] = await sql<{ uid: string }[]>`
      insert into plumbline.resource (tenant, api_group, kind, name, spec)
      values (${tenant}, 'example.dev', 'Widget', 'large', jsonb_build_object('text', repeat('x', ${characters})))
      on conflict (api_group, kind, tenant, name)
        do update set spec = excluded.spec || jsonb_build_object('at', clock_timestamp()::text)
      returning uid`;
    return row?.uid ?? '';
  }

  async function stream(): ReturnType<KafkaTenant['stream']> {
    const found = await postgresTenantStreams(sql, undefined).find(tenant);
    if (!found) throw new Error(`there is no tenant ${tenant}`);
    const { status, reason } = streamReadiness(found);
    return { topic: found.topic ?? null, status, reason };
  }
}

/** Which of the objects a record is about; NaN for the large one. */
function objectNumber({ headers }: WrittenRecord): number {
  return Number(/\/w(\d+)$/.exec(String(headers['ce_subject']))?.[1] ?? Number.NaN);
}
