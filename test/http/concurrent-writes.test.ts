/** Many writers of few objects, over HTTP; then the whole history of events is read and held to what each writer was told. */

import { afterAll, expect, test } from 'vitest';

import { connect } from '#adapters/postgres/client.ts';
import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import type { Answer } from '#test/http/client.ts';
import { useWorld, type World } from '#test/http/resource-api/world.ts';
import { seededRandom, testSeed, type Random } from '#test/support/random.ts';

const WRITERS = 32;
const OBJECTS = 50;
const WRITES_EACH = 40;
const FINALIZERS = ['example.dev/a', 'example.dev/b'];

let starting: Promise<ApiServer> | undefined;
const start = (): Promise<ApiServer> => (starting ??= startApiServer());
const world = useWorld(start);
afterAll(async () => (await starting)?.stop());

interface Event {
  readonly uid: string;
  readonly type: string;
  readonly resourceVersion: string;
  readonly generation: bigint;
  readonly count: number;
  readonly finalizers: readonly string[];
}

test('32 writers of 50 objects lose no write, and every history goes forward to one end', async () => {
  const random = seededRandom(testSeed());
  const written: Answer[] = [];
  const codes = new Map<number, number>();
  await Promise.all(
    Array.from({ length: WRITERS }, () => random.fork()).map(async (own) => {
      for (let write = 0; write < WRITES_EACH; write++) {
        const answer = await writeOne(world, own);
        codes.set(answer.status, (codes.get(answer.status) ?? 0) + 1);
        if (answer.status < 300) written.push(answer);
      }
    }),
  );
  const unexpected = [...codes.keys()].filter((code) => ![200, 201, 202, 404, 409, 422].includes(code));
  expect(unexpected, `seed ${random.seed}`).toEqual([]);
  expect(written.length, `seed ${random.seed}`).toBeGreaterThan(WRITERS);

  const histories = Map.groupBy(await eventsOf(), ({ uid }) => uid);
  for (const history of histories.values()) expectForward(history, random.seed);

  // What a writer was told is in the history, at the version that it was told; a write of nothing has the one before.
  const known = new Set([...histories.values()].flat().map(({ uid, resourceVersion }) => `${uid} ${resourceVersion}`));
  const told = written.map(({ body }) => `${body.metadata.uid} ${body.metadata.resourceVersion}`);
  expect(
    told.filter((version) => !known.has(version)),
    `seed ${random.seed}`,
  ).toEqual([]);

  const ends = [...histories.values()].filter((history) => history.some(({ type }) => type === 'DELETED'));
  const { body } = await world.editor.get(`${world.widgets}?limit=1000`);
  expect(body.items.length, `seed ${random.seed}`).toBe(histories.size - ends.length);
});

/** Of one object: versions rise, counts go up by one with each new generation, and DELETED is the last, once. */
function expectForward(history: readonly Event[], seed: number): void {
  for (const [index, event] of history.entries()) {
    const before = history[index - 1];
    const shown = `seed ${seed}, uid ${event.uid}, event ${index} of ${history.map(({ type }) => type).join(' ')}`;
    expect(event.type === 'ADDED', shown).toBe(before === undefined);
    if (before === undefined) continue;
    expect(before.type, shown).not.toBe('DELETED');
    expect(BigInt(event.resourceVersion) > BigInt(before.resourceVersion), shown).toBe(true);
    const steps = event.generation - before.generation;
    expect([0n, 1n], shown).toContain(steps);
    // A lost update would set a count that was there already.
    expect([before.count, before.count + 1], shown).toContain(event.count);
    if (event.count > before.count) expect(steps, shown).toBe(1n);
  }
}

/** One write at random, made from what was read. Each change of the spec counts up. */
async function writeOne({ editor, widgets, widget }: World, random: Random): Promise<Answer> {
  const path = widget(`w${random.int(1, OBJECTS)}`);
  const read = await editor.get(path);
  if (read.status === 404) {
    return editor.post(widgets, {
      metadata: { name: path.split('/').at(-1), finalizers: some(random) },
      spec: { size: 0 },
    });
  }
  const { metadata, spec } = read.body;
  const next = { ...spec, size: spec.size + 1 };
  switch (random.int(1, 7)) {
    case 1:
      return editor.put(path, { ...read.body, spec: next });
    case 2:
      return editor.patch(path, { metadata: { resourceVersion: metadata.resourceVersion }, spec: next });
    case 3:
      return editor.send(
        'PATCH',
        path,
        [
          { op: 'test', path: '/spec/size', value: spec.size },
          { op: 'replace', path: '/spec/size', value: spec.size + 1 },
        ],
        { 'Content-Type': 'application/json-patch+json' },
      );
    case 4:
      return editor.patch(path, { metadata: { labels: { a: String(random.int(1, 3)) } } });
    case 5:
      return editor.put(path, { ...read.body, metadata: { ...metadata, finalizers: some(random) } });
    case 6:
      return editor.put(path, { ...read.body, metadata: { ...metadata, finalizers: [] } });
    default:
      return editor.delete(path);
  }
}

function some(random: Random): string[] {
  return FINALIZERS.filter(() => random.chance(0.4));
}

/** All events of the tenant's widgets in their order, once they are published: a list waits for that. */
async function eventsOf(): Promise<readonly Event[]> {
  expect((await world.editor.get(world.widgets)).headers.get('Warning')).toBeNull();
  const sql = connect((await start()).databaseUrl, { applicationName: 'test' });
  try {
    return await sql<Event[]>`
      select uid, type, resource_version::text as "resourceVersion", generation, (spec ->> 'size')::int4 as count, finalizers
      from plumbline.event_log where tenant = ${world.tenant} order by seq`;
  } finally {
    await sql.end();
  }
}
