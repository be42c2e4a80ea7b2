import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type { ResourceStore } from '#core/ports/resources.ts';
import { fakeWatch } from '#test/unit/functions/watch/fake-watch.ts';
import { fakeDirectory, fakeLog, plainCursors, settle } from '#test/unit/functions/watch/fakes.ts';

/** Adds events to a stream, tells of them or not, or waits until all that was told is delivered. */
type Step = { readonly stream: number; readonly count: number; readonly told: boolean } | 'settle';

interface Frame {
  /** `stream-seq` of an event; undefined for a bookmark and READY. */
  readonly id: string | undefined;
  readonly cursor: string | undefined;
}

const STREAMS = 4;
const IDS = Array.from({ length: STREAMS }, (_, index) => index + 1);
const step = fc.record({
  stream: fc.integer({ min: 1, max: STREAMS }),
  count: fc.integer({ min: 1, max: 5 }),
  told: fc.boolean(),
});
const steps: fc.Arbitrary<readonly Step[]> = fc.array(fc.oneof({ weight: 4, arbitrary: step }, fc.constant('settle')), {
  minLength: 1,
  maxLength: 25,
});
/** Some events match nothing, and a cursor passes over them. */
const FILTER = '!event.seq.endsWith("3")';
const isMatch = (seq: number): boolean => seq % 10 !== 3;

test('a cursor is, in each of interleaved tenants, behind the last event up to which all are processed, and a watch from it delivers exactly the rest', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.boolean(), async (script, isFiltered) => {
      const world = begin();
      try {
        const query = isFiltered ? `&filter=${encodeURIComponent(FILTER)}` : '';
        const watcher = await world.watch(`from=earliest${query}`);
        const lengths = new Map(IDS.map((id) => [id, 0]));
        for (const next of script) await run(world, lengths, next);
        for (const id of IDS) world.log.tell(BigInt(id));
        const all = IDS.flatMap((id) => seqsTo(lengths.get(id) ?? 0, isFiltered).map((seq) => `${id}-${seq}`));
        await haveCome(watcher, all.length);
        expect(delivered(watcher).toSorted()).toEqual(all.toSorted());
        for (const [index, { cursor }] of watcher.entries()) {
          if (cursor === undefined) continue;
          const before = delivered(watcher.slice(0, index + 1));
          expectContiguous(cursor, before, isFiltered);
          const resumed = await world.watch(`from=${cursor}${query}`);
          await haveCome(resumed, all.length - before.length);
          const rest = delivered(resumed);
          expect([...before, ...rest].toSorted()).toEqual(all.toSorted());
        }
      } finally {
        await world.stop();
      }
    }),
    { numRuns: 40 },
  );
});

/** Every match up to the cursor was delivered, and none behind it. */
function expectContiguous(cursor: string, before: readonly string[], isFiltered: boolean): void {
  for (const [stream, { seq }] of plainCursors.open(cursor, 'public', '*')) {
    const expected = seqsTo(Number(seq), isFiltered).map((each) => `${stream}-${each}`);
    expect(before.filter((id) => id.startsWith(`${stream}-`))).toEqual(expected);
  }
}

async function run({ log }: World, lengths: Map<number, number>, next: Step): Promise<void> {
  if (next === 'settle') return settle();
  const length = (lengths.get(next.stream) ?? 0) + next.count;
  lengths.set(next.stream, length);
  log.fill(BigInt(next.stream), length);
  if (next.told) log.tell(BigInt(next.stream));
}

function seqsTo(last: number, isFiltered: boolean): number[] {
  return Array.from({ length: last }, (_, index) => index + 1).filter((seq) => !isFiltered || isMatch(seq));
}

function delivered(frames: readonly Frame[]): string[] {
  return frames.flatMap(({ id }) => id ?? []);
}

/** Filters work in turns. What is too much comes with the rest. */
async function haveCome(frames: readonly Frame[], count: number): Promise<void> {
  await vi.waitFor(() => expect(delivered(frames).length).toBeGreaterThanOrEqual(count), {
    timeout: 5_000,
    interval: 1,
  });
  await settle();
}

type World = ReturnType<typeof begin>;

function begin() {
  const log = fakeLog();
  const { app, hub } = fakeWatch({ log, streams: fakeDirectory(...IDS), store: {} as ResourceStore });
  return { log, watch, stop: () => hub.stop() };

  /** The frames of a watch, as they come. */
  async function watch(query: string): Promise<readonly Frame[]> {
    const frames: Frame[] = [];
    const answer = await app.request(`/watch/v1/events?${query}`);
    expect(answer.status).toBe(200);
    void read(answer.body, frames);
    await settle();
    return frames;
  }

  async function read(body: ReadableStream<Uint8Array> | null, frames: Frame[]): Promise<void> {
    const decoder = new TextDecoder();
    const parser = createParser({
      onEvent: ({ event, id, data }) => {
        if (event === 'ERROR') throw new Error(data);
        frames.push({ id: event === 'ADDED' ? JSON.parse(data).id : undefined, cursor: id });
      },
    });
    for await (const chunk of body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
  }
}
