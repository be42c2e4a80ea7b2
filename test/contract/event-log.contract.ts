/** What every event log keeps, whatever it is made of. Each adapter runs this suite; see the port for the words. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StreamEvent } from '#core/event.ts';
import { type EventLog, type LogPoint, PositionExpired, type ReadLimits } from '#core/ports/event-log.ts';
import { tailContract } from '#test/contract/event-log-tail.contract.ts';

/** A log to try, and what only its adapter can do. */
export interface EventLogFixture {
  readonly log: EventLog;
  /** A new stream without events. */
  newStream(): Promise<bigint>;
  /** Appends events whose documents have about this size; resolves when they are in the log. */
  append(stream: bigint, count: number, documentBytes?: number): Promise<void>;
  /** Removes all present events of all streams, as retention does. */
  expireAll(): Promise<void>;
  close(): Promise<void>;
}

const ORIGIN: LogPoint = { seq: 0n, position: 0n };
const WIDE: ReadLimits = { maxCount: 1_000, maxBytes: 64 * 1024 * 1024 };

export function eventLogContract(name: string, open: () => Promise<EventLogFixture>): void {
  describe(`event log: ${name}`, () => {
    let fixture: EventLogFixture;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture.close());

    test('a new stream is empty, and its start is its head', async () => {
      const stream = await fixture.newStream();
      expect(await fixture.log.ranges([stream])).toEqual(
        new Map([[stream, { start: ORIGIN, head: ORIGIN, assigned: 0n }]]),
      );
      expect(await fixture.log.read(stream, ORIGIN, WIDE)).toEqual({ events: [], more: false });
    });

    test('streams that do not exist are left out of the ranges', async () => {
      expect(await fixture.log.ranges([999_999_999n])).toEqual(new Map());
    });

    test('seq is dense from 1, positions rise with it, and the head is the last event', async () => {
      const stream = await fixture.newStream();
      await fixture.append(stream, 3);
      await fixture.append(stream, 2);
      const { events } = await fixture.log.read(stream, ORIGIN, WIDE);
      expect(events.map((event) => event.seq)).toEqual([1n, 2n, 3n, 4n, 5n]);
      expect(events.map((event) => event.position)).toEqual(events.map((event) => event.position).toSorted(ascending));
      expect(new Set(events.map((event) => event.position)).size).toBe(5);
      expect((await fixture.log.ranges([stream])).get(stream)?.head).toEqual(pointOf(events[4]));
    });

    test('reading again gives the same events', async () => {
      const stream = await fixture.newStream();
      await fixture.append(stream, 4);
      const first = await fixture.log.read(stream, ORIGIN, WIDE);
      expect(await fixture.log.read(stream, ORIGIN, WIDE)).toEqual(first);
    });

    test('from every point, the next event is the one behind it', async () => {
      const stream = await fixture.newStream();
      await fixture.append(stream, 10);
      const { events } = await fixture.log.read(stream, ORIGIN, WIDE);
      for (const event of events) {
        const rest = await fixture.log.read(stream, pointOf(event), WIDE);
        expect(rest.events.map(({ id }) => id)).toEqual(
          events.filter(({ seq }) => seq > event.seq).map(({ id }) => id),
        );
      }
    });

    test('one stream has no events of another', async () => {
      const [one, other] = [await fixture.newStream(), await fixture.newStream()];
      await fixture.append(one, 2);
      await fixture.append(other, 3);
      const { events } = await fixture.log.read(one, ORIGIN, WIDE);
      expect(events).toHaveLength(2);
      expect(events.every((event) => event.stream === one)).toBe(true);
    });

    test('a read ends at its count, and says that there is more', async () => {
      const stream = await fixture.newStream();
      await fixture.append(stream, 5);
      const cut = await fixture.log.read(stream, ORIGIN, { ...WIDE, maxCount: 2 });
      expect(cut.events.map(({ seq }) => seq)).toEqual([1n, 2n]);
      expect(cut.more).toBe(true);
    });

    test('a read ends at its bytes, has one event at least, and says that there is more', async () => {
      const stream = await fixture.newStream();
      await fixture.append(stream, 4, 40_000);
      const cut = await fixture.log.read(stream, ORIGIN, { ...WIDE, maxBytes: 100_000 });
      expect(cut.events.map(({ seq }) => seq)).toEqual([1n, 2n]);
      expect(cut.more).toBe(true);
      const least = await fixture.log.read(stream, ORIGIN, { ...WIDE, maxBytes: 1 });
      expect(least.events).toHaveLength(1);
      expect(least.more).toBe(true);
    });

    test('behind what retention removed it refuses, and tells from where it can be read', async () => {
      const stream = await fixture.newStream();
      await fixture.append(stream, 3);
      const { events } = await fixture.log.read(stream, ORIGIN, WIDE);
      await fixture.expireAll();
      const last = pointOf(events[2]);
      expect((await fixture.log.ranges([stream])).get(stream)).toEqual({ start: last, head: last, assigned: 3n });
      const refusal = await fixture.log.read(stream, pointOf(events[0]), WIDE).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(PositionExpired);
      expect(refusal).toMatchObject({ stream, earliest: last });
      // The head itself is no lost place, and seqs go on behind it.
      expect((await fixture.log.read(stream, last, WIDE)).events).toEqual([]);
      await fixture.append(stream, 1);
      expect((await fixture.log.read(stream, last, WIDE)).events.map(({ seq }) => seq)).toEqual([4n]);
    });

    tailContract(() => fixture);
  });
}

function ascending(a: bigint, b: bigint): number {
  return a < b ? -1 : 1;
}

function pointOf(event: StreamEvent | undefined): LogPoint {
  if (!event) throw new Error('there is no such event');
  return { seq: event.seq, position: event.position };
}
