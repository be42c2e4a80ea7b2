/** Lists: a page of 500 out of 100,000 objects, over HTTP, beside the bare query for the same rows as JSON text. */

import { type Instance, TENANT, createWidgets, published } from '#test/bench/instance.ts';
import { type Finding, median, milliseconds } from '#test/bench/report.ts';

const OBJECTS = 100_000;
const PAGE = 500;
const ROUNDS = 60;

export async function benchList(instance: Instance): Promise<readonly Finding[]> {
  const { sql, url, headers } = instance;
  await createWidgets(sql, OBJECTS);
  await published(sql);
  await sql`vacuum analyze plumbline.resource`;
  const bare: number[] = [];
  const pages: number[] = [];
  let next = '';
  let after = '';
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push(await timed(async () => (after = await barePage(instance, after))));
    pages.push(
      await timed(async () => {
        const path = `/apis/example.dev/v1/namespaces/${TENANT}/widgets?limit=${PAGE}${next && `&continue=${next}`}`;
        // What is measured is the list: compression, which fetch asks for, is the client's choice.
        const answer = await fetch(url + path, { headers: { ...headers, 'Accept-Encoding': 'identity' } });
        next = /"continue":"([^"]+)"/.exec((await answer.text()).slice(0, 2_000))?.[1] ?? '';
      }),
    );
  }
  const ratio = median(pages) / median(bare);
  return [
    {
      what: `list page of ${PAGE} out of ${OBJECTS}, over HTTP`,
      figure: `${milliseconds(median(pages))} (bare query ${milliseconds(median(bare))})`,
      ratio: `${ratio.toFixed(2)}×`,
      goal: '≤ 1.3×',
      met: ratio <= 1.3,
    },
  ];

  async function barePage({ sql: connection }: Instance, name: string): Promise<string> {
    const rows = await connection<{ name: string }[]>`
      select uid, name, resource_version, generation, creation_timestamp, labels::text, annotations::text, spec::text, status::text
      from plumbline.resource
      where api_group = 'example.dev' and kind = 'Widget' and tenant = ${TENANT} and name > ${name}
      order by name limit ${PAGE}`;
    return rows.at(-1)?.name ?? '';
  }
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
