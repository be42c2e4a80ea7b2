/**
 * Writes through HTTP, beside the same statements sent to the same database by themselves: creates, replacements and
 * deletions of objects of 1 KB, by as many callers at once, over as many connections as the API has.
 */

import { connect } from '#adapters/postgres/client.ts';
import { resourceWrites } from '#adapters/postgres/resource-writes.ts';
import type { ResourceWrites } from '#core/ports/resources.ts';
import { createHttpCaller, type HttpCaller } from '#test/bench/http-caller.ts';
import { type Instance, PAD, published, TENANT } from '#test/bench/instance.ts';
import { type Finding, median, rate } from '#test/bench/report.ts';

const OBJECTS = 2_000;
const CALLERS = 32;
const CONNECTIONS = 10;
const ROUNDS = 5;
const SCOPE = { tenants: [TENANT] };
const WIDGET = { tenant: TENANT, group: 'example.dev', kind: 'Widget' };
const PLAIN = { finalizers: [], labels: '{}', annotations: '{}', ownerReferences: '[]' };

/** How one side writes; the versions are what it read. */
interface Side {
  create(name: string): Promise<string>;
  replace(name: string, resourceVersion: string): Promise<unknown>;
  remove(name: string): Promise<unknown>;
}

export async function benchApiWrites(instance: Instance): Promise<readonly Finding[]> {
  const sql = connect(instance.databaseUrl, {
    applicationName: 'plumbline bench',
    maxConnections: CONNECTIONS,
    role: 'plumbline_server',
  });
  const caller = createHttpCaller(instance, CALLERS);
  const sides = { bare: bareSide(resourceWrites(sql)), http: httpSide(caller) };
  const rates: Record<'bare' | 'http', Record<keyof Side, number[]>> = {
    bare: { create: [], replace: [], remove: [] },
    http: { create: [], replace: [], remove: [] },
  };
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      const order = round % 2 === 0 ? (['bare', 'http'] as const) : (['http', 'bare'] as const);
      for (const name of order) {
        const found = await measure(sides[name], `${name}-${round}`);
        await published(instance.sql);
        // The first one warms both up.
        if (round === 0) continue;
        for (const verb of VERBS) rates[name][verb].push(found[verb]);
      }
    }
  } finally {
    caller.close();
    await sql.end();
  }
  return VERBS.map((verb) => finding(verb, median(rates.http[verb]), median(rates.bare[verb])));
}

const VERBS = ['create', 'replace', 'remove'] as const;
const NAMES = { create: 'creates', replace: 'replacements', remove: 'deletions' };

function finding(verb: keyof Side, http: number, bare: number): Finding {
  const ratio = http / bare;
  return {
    what: `${NAMES[verb]} through HTTP, ${CALLERS} callers, one process`,
    figure: `${rate(http)} (the statements alone ${rate(bare)})`,
    ratio: ratio.toFixed(2),
    goal: '≥ 0.60',
    met: ratio >= 0.6,
  };
}

async function measure(side: Side, prefix: string): Promise<Record<keyof Side, number>> {
  const names = Array.from({ length: OBJECTS }, (_, n) => `${prefix}-${n}`);
  const versions = new Map<string, string>();
  return {
    create: await rateOf(names, async (name) => versions.set(name, await side.create(name))),
    replace: await rateOf(names, (name) => side.replace(name, versions.get(name) ?? '')),
    remove: await rateOf(names, (name) => side.remove(name)),
  };
}

/** Calls a second. */
async function rateOf(names: readonly string[], act: (name: string) => Promise<unknown>): Promise<number> {
  const left = names.values();
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (const name of left) await act(name);
    }),
  );
  return (names.length / (performance.now() - startedAt)) * 1_000;
}

function bareSide(writes: ResourceWrites): Side {
  const spec = (size: number): string => JSON.stringify({ size, pad: PAD });
  return {
    create: async (name) => (await writes.create(SCOPE, { ...WIDGET, ...PLAIN, name, spec: spec(0) })).resourceVersion,
    replace: (name, resourceVersion) =>
      writes.update(SCOPE, { ...WIDGET, name }, { ...PLAIN, spec: spec(1) }, { resourceVersion }),
    remove: (name) => writes.delete(SCOPE, { ...WIDGET, name }, {}),
  };
}

function httpSide({ send }: HttpCaller): Side {
  const path = `/apis/example.dev/v1/namespaces/${TENANT}/widgets`;
  return {
    async create(name) {
      const answer = await send('POST', path, { metadata: { name }, spec: { size: 0, pad: PAD } });
      return /"resourceVersion":"(\d+)"/.exec(answer)?.[1] ?? '';
    },
    replace: (name, resourceVersion) =>
      send('PUT', `${path}/${name}`, { metadata: { name, resourceVersion }, spec: { size: 1, pad: PAD } }),
    remove: (name) => send('DELETE', `${path}/${name}`),
  };
}
