/** What a log says that a list must show: its events applied one after the other, up to a point. */

import type { StreamEvent } from '#core/event.ts';
import { matchesSelector } from '#core/label-selector.ts';
import type { EventLog, LogPoint } from '#core/ports/event-log.ts';
import type { ListParams } from '#core/ports/resources.ts';

/** Each stream's events, from the first. */
export type Replay = ReadonlyMap<bigint, readonly StreamEvent[]>;

export async function readReplay(log: EventLog, streams: readonly bigint[]): Promise<Replay> {
  return new Map(await Promise.all(streams.map(async (stream) => [stream, await readStream(log, stream)] as const)));
}

async function readStream(log: EventLog, stream: bigint): Promise<readonly StreamEvent[]> {
  const events: StreamEvent[] = [];
  for (;;) {
    const last = events.at(-1);
    const after = last ? { seq: last.seq, position: last.position } : { seq: 0n, position: 0n };
    const read = await log.read(stream, after, { maxCount: 1000, maxBytes: 8 * 1024 * 1024 });
    events.push(...read.events);
    if (!read.more) return events;
  }
}

/** The last event of each object at these points, in the order of lists. */
export function stateAt(replay: Replay, head: ReadonlyMap<bigint, LogPoint>): readonly StreamEvent[] {
  const state = new Map<string, StreamEvent>();
  for (const [stream, { seq }] of head) {
    for (const event of (replay.get(stream) ?? []).slice(0, Number(seq))) {
      if (event.type === 'DELETED') state.delete(event.subject.uid);
      else state.set(event.subject.uid, event);
    }
  }
  return [...state.values()].toSorted(byTenantAndName);
}

/** The objects on the page of a state that these parameters ask for, as JSON texts. */
export function pageOf(
  state: readonly StreamEvent[],
  params: ListParams,
): { objects: readonly string[]; more: boolean } {
  const { after } = params;
  const events = state.filter(
    ({ subject, labels }) =>
      subject.group === params.group &&
      subject.kind === params.kind &&
      (params.tenant === undefined || subject.tenant === params.tenant) &&
      (params.name === undefined || subject.name === params.name) &&
      (after === undefined || compare([subject.tenant, subject.name], [after.tenant, after.name]) > 0) &&
      matchesSelector(params.labels, JSON.parse(labels) as Record<string, string>),
  );
  return { objects: objectsOf(events.slice(0, params.limit)), more: events.length > params.limit };
}

export function objectsOf(events: readonly StreamEvent[]): readonly string[] {
  return events.map(({ object }) => object);
}

function byTenantAndName({ subject: one }: StreamEvent, { subject: other }: StreamEvent): number {
  return compare([one.tenant, one.name], [other.tenant, other.name]);
}

function compare(
  [tenant, name]: readonly [string, string],
  [otherTenant, otherName]: readonly [string, string],
): number {
  if (tenant !== otherTenant) return tenant < otherTenant ? -1 : 1;
  if (name === otherName) return 0;
  return name < otherName ? -1 : 1;
}
