import { expect, test } from 'vitest';
import { ORIGIN } from '#core/ports/event-log.ts';
import type { SseBytes } from '#core/ports/sse.ts';
import { createFeeds } from '#functions/watch/feed/feeds.ts';
import { compileFilter } from '#functions/watch/filter/compile.ts';
import { MissedBatches } from '#functions/watch/backlog/missed-batches.ts';
import { Pace } from '#functions/watch/pacing/pace.ts';
import { createSelection, type Selection } from '#functions/watch/selection.ts';
import { Tails } from '#functions/watch/tail/tails.ts';
import { Turns } from '#functions/watch/pacing/turns.ts';
import { Watcher } from '#functions/watch/watcher.ts';
import { fakeDirectory, fakeLog, plainCursors, settle } from '#test/unit/functions/watch/fakes.ts';

const STREAM = 1n;

test('filters that take long do it a few events at a time, in turns; who does not filter has all at once', async () => {
  const { log, watch } = await world();
  const filtered = ['true', '!false'].map((text) => watch(createSelection({ filter: compileFilter(text) })));
  const plain = watch(createSelection({}));
  await settle();
  log.fill(STREAM, 100);
  log.tell(STREAM);
  while (plain.count === 0) await new Promise(setImmediate);
  expect(plain.count).toBe(100);
  for (const { count } of filtered) expect(count).toBeLessThan(20);
  while (filtered.some(({ count }) => count < 100)) await new Promise(setImmediate);
  for (const { most } of filtered) expect(most).toBeLessThan(20);
});

async function world() {
  const log = fakeLog();
  const onError = (error: unknown): void => expect.fail(String(error));
  let nowMs = 0;
  // As if each look at the clock were half a millisecond of work.
  const turns = new Turns({ nowMs: () => (nowMs += 0.5) });
  const deps = { log, streams: fakeDirectory(1), cursors: plainCursors, onError, turns };
  const feeds = createFeeds(
    {
      ...deps,
      tails: new Tails(deps),
      onIsolationViolation: () => onError('a violation'),
      onFilterError: () => onError('a filter failed'),
    },
    30_000,
  );
  const feed = await feeds.get('public', '*');
  const backlog = { log, missed: new MissedBatches(), pace: new Pace() };
  return { log, watch };

  function watch(selection: Selection): { count: number; most: number } {
    const came = { count: 0, most: 0 };
    const write = ({ plain }: SseBytes): void => {
      const events = new TextDecoder().decode(plain).split('event: ').length - 1;
      came.count += events;
      came.most = Math.max(came.most, events);
    };
    const sink = { bufferedBytes: 0, write, end: () => undefined, destroy: () => undefined };
    new Watcher({ feed, backlog, sink, selection, endsWithTenants: false }).begin(new Map([[STREAM, ORIGIN]]));
    return came;
  }
}
