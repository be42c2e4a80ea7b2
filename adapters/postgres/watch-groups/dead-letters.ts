/** Parked events of watch groups. */

import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';
import { isDone } from '#adapters/postgres/watch-groups/is-done.ts';
import type { AdminAct, DeadLetterPage, WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';
import type { DeadLetter, HeldLane, WatchGroups } from '#core/ports/watch-groups.ts';

/** Events of a page: what an answer is made of lies in memory. */
const PAGE_BYTES = 4 * 1024 * 1024;

type DeadLetters = Pick<WatchGroups, 'park'> &
  Pick<WatchGroupAdmin, 'deadLetters' | 'retryDeadLetter' | 'skipDeadLetter'>;

export type DeadLetterRow = Omit<DeadLetter, 'point'> & {
  readonly group: bigint;
  readonly seq: bigint;
  readonly position: bigint;
};

/** Of a dead letter `d` in a stream `s`. */
export function letterColumns(sql: Sql): Fragment {
  return sql`d.watch_group as "group", d.id, d.stream, d.lane, d.seq, d.position, s.tenant, d.event, d.type, d.attempts,
    d.reason, d.parked_at as "parkedAt"`;
}

export function toDeadLetter(row: DeadLetterRow): DeadLetter {
  const { id, stream, lane, seq, position, tenant, event, type, attempts, reason, parkedAt } = row;
  return { id, stream, lane, point: { seq, position }, tenant, event, type, attempts, reason, parkedAt };
}

export function groupDeadLetters(sql: Sql): DeadLetters {
  return {
    async park({ group, stream, lane, fence }: HeldLane, letter: Parameters<WatchGroups['park']>[1]): Promise<boolean> {
      return isDone(
        sql,
        'watch group',
        () => sql`
        plumbline.park_event(${String(group)}::bigint, ${String(stream)}::bigint, ${lane}::integer,
          ${String(fence)}::bigint, ${String(letter.point.seq)}::bigint, ${String(letter.point.position)}::bigint,
          ${letter.event}, ${letter.type}, ${letter.attempts}::integer, ${letter.reason})`,
      );
    },

    async deadLetters(group: bigint, after: bigint, limit: number): Promise<DeadLetterPage> {
      const rows = await guarded(
        'dead letters',
        () => sql<(DeadLetterRow & { readonly found: bigint })[]>`
        select * from (
          select *, count(*) over () as found, sum(octet_length(event)) over (order by id) - octet_length(event) as ahead
          from (
            select ${letterColumns(sql)} from plumbline.group_dead_letter d join plumbline.stream s on s.id = d.stream
            where d.watch_group = ${String(group)}::bigint and d.id > ${String(after)}::bigint
            order by d.id limit ${limit + 1}
          ) l
        ) m where ahead < ${PAGE_BYTES} order by id limit ${limit}`,
      );
      const [first] = rows;
      return { letters: rows.map(toDeadLetter), more: first !== undefined && first.found > BigInt(rows.length) };
    },

    async retryDeadLetter(group: bigint, id: bigint, { by, reason }: AdminAct): Promise<boolean> {
      return isDone(
        sql,
        'dead letter',
        () => sql`plumbline.retry_dead_letter(${String(group)}::bigint, ${String(id)}::bigint, ${by}, ${reason})`,
      );
    },

    async skipDeadLetter(group: bigint, id: bigint, { by, reason }: AdminAct): Promise<boolean> {
      return isDone(
        sql,
        'dead letter',
        () => sql`plumbline.skip_dead_letter(${String(group)}::bigint, ${String(id)}::bigint, ${by}, ${reason})`,
      );
    },
  };
}
