import { afterEach, expect, test, vi } from 'vitest';
import { ORIGIN } from '#core/ports/event-log.ts';
import type { Snapshot } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import type { Feed } from '#functions/watch/feed/feed.ts';
import { streamInitialState } from '#functions/watch/start/initial-state.ts';
import type { Selection } from '#functions/watch/selection.ts';
import type { Watcher } from '#functions/watch/watcher.ts';

afterEach(() => vi.restoreAllMocks());

test('the objects that an initial watch begins with are filtered a few at a time, and others go on in between', async () => {
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  let inTurn = 0;
  const turns: number[] = [];
  const selection = {
    matches: () => true,
    typeOf() {
      nowMs += 1;
      inTurn += 1;
      return undefined;
    },
  } as unknown as Selection;
  const begun = Promise.withResolvers<void>();
  const watcher = { write: () => undefined, flushed: async () => undefined, begin: () => begun.resolve() };
  void streamInitialState({
    snapshot: snapshotOf(100),
    watcher: watcher as unknown as Watcher,
    feed: { seal: () => '' } as unknown as Feed,
    selection,
  });
  while (turns.reduce((sum, count) => sum + count, 0) < 100) {
    await new Promise(setImmediate);
    turns.push(inTurn);
    inTurn = 0;
  }
  await begun.promise;
  expect(Math.max(...turns)).toBeLessThanOrEqual(10);
});

function snapshotOf(count: number): Snapshot {
  const row = {
    tenant: 't1',
    uid: 'u',
    labels: '{}',
    annotations: '{}',
    spec: '{}',
    status: '{}',
    creationTimestamp: new Date(0),
    deletionTimestamp: null,
    finalizers: [],
    ownerReferences: '[]',
  } as unknown as ResourceRow;
  return {
    streams: new Map([['t1', 1n]]),
    head: new Map([[1n, ORIGIN]]),
    pages: (async function* pages() {
      yield Array.from({ length: count }, () => row);
    })(),
    close: async () => undefined,
  };
}
