/** `initial=true`: the objects as they are at the log's head, each as ADDED, then a bookmark, then what follows. */

import type { StreamEvent } from '#core/event.ts';
import { ORIGIN } from '#core/ports/event-log.ts';
import type { Snapshot } from '#core/ports/resources.ts';
import { resourceJson } from '#core/resource-json.ts';
import type { ResourceRow } from '#core/resource.ts';
import type { Feed } from '#functions/watch/feed/feed.ts';
import { bookmarkFrame, eventFrame } from '#functions/watch/frames.ts';
import type { Selection } from '#functions/watch/selection.ts';
import type { Watcher } from '#functions/watch/watcher.ts';

export interface InitialState {
  readonly watcher: Watcher;
  readonly feed: Feed;
  readonly snapshot: Snapshot;
  readonly selection: Selection;
}

const SLICE_MS = 4;

/** Streams the snapshot at the client's pace, a page in memory, and begins the watch behind it. Never throws. */
export async function streamInitialState(state: InitialState): Promise<void> {
  const { watcher, feed, snapshot, selection } = state;
  try {
    for await (const page of snapshot.pages) {
      let text = '';
      let beganAtMs = performance.now();
      for (const row of page) {
        if (performance.now() - beganAtMs > SLICE_MS) {
          await new Promise<void>((resolve) => setImmediate(resolve));
          beganAtMs = performance.now();
        }
        if (!selection.matches(row)) continue;
        const event = synthetic(row, snapshot);
        const type = selection.typeOf(event);
        if (type !== undefined) text += eventFrame(event, type, undefined);
      }
      if (text !== '') watcher.write(text);
      await watcher.flushed();
      if (watcher.isClosed) return;
    }
    watcher.write(bookmarkFrame('InitialEventsEnd', feed.seal(snapshot.head)));
    watcher.begin(snapshot.head);
  } catch (error) {
    // The state was not delivered: there is no place to go on from.
    watcher.end(feed.errorOf(error, undefined));
  } finally {
    await snapshot.close();
  }
}

/** An object as an event that never was in the log: no resume point, and named after its version. */
function synthetic(row: ResourceRow, { streams, head }: Snapshot): StreamEvent {
  const stream = streams.get(row.tenant) ?? 0n;
  const { seq, position } = head.get(stream) ?? ORIGIN;
  const object = resourceJson(row);
  return {
    stream,
    seq,
    position,
    id: `${row.uid}.${row.resourceVersion}`,
    type: 'ADDED',
    time: row.creationTimestamp,
    txid: '',
    traceparent: null,
    subject: row,
    object,
    size: object.length,
    labels: row.labels,
    oldLabels: null,
  };
}
