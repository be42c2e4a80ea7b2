/** How things came to be as they should not: what was said to the server about them, and what bindings wanted then. */

import type { ChaosWorld } from '#test/fault/chaos/world.ts';

const MOST_LINES = 30;
const LONGEST_LINE = 240;
const NAMED = /^(?:role|database) (?:is missing|should not be there): (\S+)/;

/** The last that is known of what these problems name; nothing when they name nothing on the server. */
export async function historyOf(world: ChaosWorld, problems: readonly string[]): Promise<string> {
  const names = problems.flatMap((problem) => NAMED.exec(problem)?.[1] ?? []);
  if (names.length === 0) return '';
  const said = (await world.serverLog())
    .split('\n')
    .filter((line) => names.some((name) => line.includes(`"${name}"`)))
    .map((line) => line.slice(0, LONGEST_LINE));
  const captured = await world.sql<{ line: string }[]>`
    select concat_ws(' ', to_char(occurred_at at time zone 'UTC', 'HH24:MI:SS.MS'), type, uid, name, generation,
      case when deletion_timestamp is not null then 'deleting' end, spec::text,
      jsonb_path_query_array(status, '$.places[*].role')::text) as line
    from plumbline.outbox where kind = 'RoleBinding'
      and (tenant || '_' || (spec ->> 'subject') = any (${names})
        or status @? '$.places[*]' and exists (
          select from jsonb_path_query(status, '$.places[*].role') role where role #>> '{}' = any (${names})))
    order by id`;
  const wanted = captured.map(({ line }) => line);
  return ['on the server:', ...said.slice(-MOST_LINES), 'bindings:', ...wanted.slice(-MOST_LINES)].join('\n');
}
