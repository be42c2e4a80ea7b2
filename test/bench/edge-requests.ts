/** Requests one after the other, in turns at a server on Node and at one on workerd: how long each takes. */

import { createHttpCaller, type HttpCaller } from '#test/bench/http-caller.ts';
import { createWidgets, type Instance, PAD, published, TENANT } from '#test/bench/instance.ts';
import { type Finding, milliseconds, percentile } from '#test/bench/report.ts';

const OBJECTS = 50;
const ROUNDS = 6;
const CALLS = 50;
const WIDGETS = `/apis/example.dev/v1/namespaces/${TENANT}/widgets`;

const VERBS = {
  read: { what: 'read of one object', call: (caller, n) => caller.send('GET', `${WIDGETS}/w${1 + (n % OBJECTS)}`) },
  list: { what: `list of ${OBJECTS} objects`, call: (caller) => caller.send('GET', `${WIDGETS}?limit=${OBJECTS}`) },
  write: { what: 'create', call: (caller, n) => caller.send('POST', WIDGETS, widget(n)) },
} as const satisfies Record<
  string,
  { readonly what: string; readonly call: (caller: HttpCaller, n: number) => Promise<unknown> }
>;

/** @param how the edge reaches its database, for the reader */
export async function compareRequests(node: Instance, edge: Instance, how: string): Promise<readonly Finding[]> {
  const sides = await Promise.all([sideOf(node), sideOf(edge)]);
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await measure(side, round);
  }
  for (const { caller } of sides) caller.close();
  const [onNode, onEdge] = sides;
  return Object.entries(VERBS).map(([verb, { what }]) => {
    const [ours, theirs] = [onEdge.latencies.get(verb) ?? [], onNode.latencies.get(verb) ?? []];
    return {
      what: `${what} on workerd, ${how}`,
      figure: `${figure(ours)} (on Node ${figure(theirs)})`,
      ratio: `${(percentile(ours, 0.5) / percentile(theirs, 0.5)).toFixed(1)}×`,
      goal: '',
      met: undefined,
    };
  });
}

interface Side {
  readonly instance: Instance;
  readonly caller: HttpCaller;
  readonly latencies: Map<string, number[]>;
}

async function sideOf(instance: Instance): Promise<Side> {
  await instance.sql`delete from plumbline.resource where kind = 'Widget'`;
  await createWidgets(instance.sql, OBJECTS);
  await published(instance.sql);
  return { instance, caller: createHttpCaller(instance, 1), latencies: new Map() };
}

async function measure({ instance, caller, latencies }: Side, round: number): Promise<void> {
  for (const [verb, { call }] of Object.entries(VERBS)) {
    const found: number[] = [];
    for (let n = 0; n < CALLS; n += 1) {
      const startedAtMs = performance.now();
      await call(caller, round * CALLS + n);
      found.push(performance.now() - startedAtMs);
    }
    // The first round warms up.
    if (round > 0) latencies.set(verb, [...(latencies.get(verb) ?? []), ...found]);
  }
  await published(instance.sql);
}

function widget(n: number): object {
  return { metadata: { name: `made-${n}` }, spec: { size: n % 1_000, pad: PAD } };
}

export function figure(latencies: readonly number[]): string {
  return `p50 ${milliseconds(percentile(latencies, 0.5))}, p99 ${milliseconds(percentile(latencies, 0.99))}`;
}
