/** Watches as the seam's tests read them: which events came, and what state they were shown. */

import type { SseClient, SseEvent } from '#test/support/sse-client.ts';

export interface SeenObject {
  readonly tenant: string;
  readonly uid: string;
  readonly version: string;
}

export interface SeenEvent {
  readonly tenant: string;
  readonly seq: number;
  readonly id: string;
  /** The cursor behind it. */
  readonly cursor: string;
}

const CHANGES: readonly string[] = ['ADDED', 'MODIFIED', 'DELETED'];

/** The next events that are changes. */
export async function takeChanges(watcher: SseClient, count: number): Promise<readonly SeenEvent[]> {
  const events: SeenEvent[] = [];
  while (events.length < count) events.push(seen(await watcher.waitFor(isChange)));
  return events;
}

/** The objects of an initial state, up to its bookmark. */
export async function takeInitialState(watcher: SseClient): Promise<readonly SeenObject[]> {
  const objects: SeenObject[] = [];
  await watcher.waitFor(({ event, data }) => {
    if (CHANGES.includes(event)) objects.push({ tenant: data.tenant, uid: data.uid, version: data.resourceversion });
    return event === 'BOOKMARK' && data.reason === 'InitialEventsEnd';
  });
  return objects;
}

/** Changes until each of these tenants is at its number. */
export async function takeUntil(watcher: SseClient, heads: ReadonlyMap<string, number>): Promise<readonly SeenEvent[]> {
  const events: SeenEvent[] = [];
  const missing = new Map(heads);
  while (missing.size > 0) {
    const event = seen(await watcher.waitFor(isChange));
    events.push(event);
    if (event.seq >= (missing.get(event.tenant) ?? Infinity)) missing.delete(event.tenant);
  }
  return events;
}

function isChange({ event }: SseEvent): boolean {
  return CHANGES.includes(event);
}

function seen({ id = '', data }: SseEvent): SeenEvent {
  return { tenant: data.tenant, seq: Number(data.seq), id: data.id, cursor: id };
}
