/**
 * In which order test files begin: those that take longest first, so that none of them is what a run waits for in the end.
 * They, and the kinds of tests behind them, are mixed: some work all the time, others mostly wait.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What took more than 25 s on two cores. Those that work and those that wait take turns. */
const LONGEST: readonly string[] = [
  'integration/database-kinds-testkit',
  'fault/kafka-watch',
  'integration/database-crash-points',
  'fault/slow-watcher',
  'fault/reconcile-chaos',
  'fault/half-open',
  'property/ordering-kafka',
  'fault/kafka-publisher-network',
  'property/ordering-broken-publisher',
  'fault/database-network',
  'http/client',
  'integration/kafka-reading-cluster',
  'property/ordering',
  'fault/kafka-publisher-cluster',
  'property/list-watch-seam',
  'integration/kafka-writer-cluster',
  'fault/watch-groups-chaos',
  'integration/kafka-writer-outages',
  'property/ordering-kafka-broken-publisher',
  'integration/kafka-reading-outages',
  'http/watch',
  'integration/reconcile-crash-points',
  'integration/embedded-postgres',
  'fault/server-killed',
  'integration/kafka-server',
  'property/publisher-sleep',
  'integration/cursor-key-rotation',
  'http/remote-issuer',
  'fault/database-killed',
];

/** For `sequence.sequencer` of vitest. */
export class TestOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const places = new Map(LONGEST.map((name, place) => [pathOf(this.ctx.config.root, name), place]));
    const placeOf = ({ moduleId }: TestSpecification): number => places.get(moduleId) ?? Infinity;
    // oxlint-disable-next-line unicorn/no-array-sort -- vitest's order, of no array
    const sorted = await super.sort(files);
    const others = sorted.filter((file) => placeOf(file) === Infinity);
    return [
      ...files.filter((file) => placeOf(file) < Infinity).toSorted((a, b) => placeOf(a) - placeOf(b)),
      ...spread([...Map.groupBy(others, ({ project }) => project.name).values()]),
    ];
  }
}

function pathOf(root: string, name: string): string {
  const path = join(root, 'test', `${name}.test.ts`);
  if (!existsSync(path)) throw new Error(`test/support/test-order.ts names test/${name}.test.ts, and it is not there`);
  return path;
}

/** All of them, each list in its order and spread evenly over the whole. */
function spread<Item>(lists: readonly (readonly Item[])[]): readonly Item[] {
  return lists
    .flatMap((list) => list.map((item, index) => ({ item, place: (index + 0.5) / list.length })))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
