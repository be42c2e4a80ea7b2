/** A log and a directory in memory, whose reads a test can hold back. */

import type { AckTokens } from '#core/ack-token.ts';
import type { WatchGroups } from '#core/ports/watch-groups.ts';
import { type Listen, tailing } from '#adapters/postgres/tailing.ts';
import { MAX_CURSOR_STREAMS, type Cursors, type CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import type { Scope } from '#core/identity.ts';
import { seesTenant } from '#core/identity.ts';
import {
  type EventLog,
  type LogPoint,
  type LogRange,
  ORIGIN,
  pointOf,
  type ReadLimits,
  type ReadResult,
} from '#core/ports/event-log.ts';
import type { Stream, StreamDirectory } from '#core/ports/streams.ts';
import { StatusError } from '#core/status-error.ts';

export interface FakeLog extends EventLog {
  /** Adds events up to this seq, tenant `t<stream>`; `without` leaves one out. */
  fill(stream: bigint, toSeq: number, options?: { readonly without?: number; readonly tenant?: string }): void;
  /** Says that the stream has new events. */
  tell(stream?: bigint): void;
  /** Called before each read; what it returns is waited for. */
  beforeRead: (stream: bigint, after: LogPoint) => Promise<void> | void;
  reads: number;
}

export function fakeLog(): FakeLog {
  const events = new Map<bigint, StreamEvent[]>();
  let listener: Parameters<Listen>[0] = () => undefined;
  const log: FakeLog = {
    reads: 0,
    beforeRead: () => undefined,
    fill(stream, toSeq, { without, tenant = `t${stream}` } = {}) {
      const known = events.get(stream) ?? [];
      events.set(stream, known);
      for (let seq = Number(known.at(-1)?.seq ?? 0n) + 1; seq <= toSeq; seq += 1) {
        if (seq !== without) known.push(eventOf(stream, seq, tenant));
      }
    },
    tell: (stream) => listener(stream),
    ranges,
    read,
    tail: tailing({ ranges, read }, (tell) => (listener = tell)),
  };
  return log;

  async function ranges(streams: readonly bigint[]): Promise<ReadonlyMap<bigint, LogRange>> {
    return new Map(
      streams.map((id) => {
        const head = headOf(events.get(id));
        return [id, { start: ORIGIN, head, assigned: head.seq }];
      }),
    );
  }

  async function read(stream: bigint, after: LogPoint, { maxCount }: ReadLimits): Promise<ReadResult> {
    log.reads += 1;
    await log.beforeRead(stream, after);
    const behind = (events.get(stream) ?? []).filter(({ seq }) => seq > after.seq);
    return { events: behind.slice(0, maxCount), more: behind.length > maxCount };
  }
}

function headOf(events: readonly StreamEvent[] | undefined): LogPoint {
  const newest = events?.at(-1);
  return newest ? pointOf(newest) : ORIGIN;
}

export function eventOf(stream: bigint, seq: number, tenant: string = `t${stream}`): StreamEvent {
  return {
    stream,
    seq: BigInt(seq),
    position: BigInt(seq),
    id: `${stream}-${seq}`,
    type: 'ADDED',
    time: new Date(0),
    txid: '1',
    traceparent: null,
    subject: {
      tenant,
      group: 'example.dev',
      kind: 'Widget',
      name: `w${seq}`,
      uid: `uid-${stream}-${seq}`,
      resourceVersion: String(seq),
    },
    object: '{}',
    size: 2,
    labels: '{}',
    oldLabels: null,
  };
}

export interface FakeDirectory extends StreamDirectory {
  readonly queries: { readonly scope: Scope; readonly alsoIds: readonly bigint[] }[];
  open(...ids: readonly number[]): void;
  /** Closed; drained too unless it is said otherwise. */
  close(id: number, options?: { readonly drained: boolean }): void;
  tell(): void;
  beforeList: () => Promise<void> | void;
}

/** Tenants are `t<id>`. */
export function fakeDirectory(...ids: readonly number[]): FakeDirectory {
  const streams = new Map<bigint, Stream>();
  let listener = (): void => undefined;
  const directory: FakeDirectory = {
    queries: [],
    beforeList: () => undefined,
    open: (...opened) => {
      for (const id of opened) {
        streams.set(BigInt(id), { id: BigInt(id), tenant: `t${id}`, closed: false, drained: false });
      }
    },
    close: (id, { drained } = { drained: true }) =>
      void streams.set(BigInt(id), { id: BigInt(id), tenant: `t${id}`, closed: true, drained }),
    tell: () => listener(),
    async list(scope, alsoIds = []) {
      directory.queries.push({ scope, alsoIds });
      await directory.beforeList();
      return [...streams.values()].filter(
        ({ id, tenant, closed }) => seesTenant(scope, tenant) && (!closed || alsoIds.includes(id)),
      );
    },
    onChange(tell) {
      listener = tell;
    },
  };
  directory.open(...ids);
  return directory;
}

/** Cursors that can be read: `1:5,2:7`. */
export const plainCursors: Cursors = {
  seal(vector: CursorVector) {
    if (vector.size > MAX_CURSOR_STREAMS) throw new StatusError('BadRequest', `${vector.size} streams`);
    return [...vector].map(([id, { seq }]) => `${id}:${seq}`).join(',');
  },
  open: (cursor) =>
    new Map(
      cursor.split(',').map((part) => {
        const [id = '0', seq = '0'] = part.split(':');
        return [BigInt(id), { seq: BigInt(seq), position: BigInt(seq) }];
      }),
    ),
};

/** For tests in which nobody is in a group. */
export const noGroups: { readonly groups: WatchGroups; readonly ackTokens: AckTokens } = {
  groups: { onChange: () => undefined } as unknown as WatchGroups,
  ackTokens: {} as AckTokens,
};

/** Lets everything that waits for nothing but promises go on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
}
