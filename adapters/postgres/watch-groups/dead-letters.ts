/** Dead letters of watch groups. */

import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';
import { isDone } from '#adapters/postgres/watch-groups/is-done.ts';
import type { AdminAct, DeadLetterPage, WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';
import {
  type DeadLetter,
  type HeldLane,
  MAX_DEAD_LETTERS,
  type Parking,
  type ParkingResult,
  type Retry,
  type WatchGroups,
} from '#core/ports/watch-groups.ts';

/** Events of a page: what an answer is made of lies in memory. */
const PAGE_BYTES = 4 * 1024 * 1024;

type DeadLetters = Pick<WatchGroups, 'park' | 'deliverDeadLetters'> &
  Pick<WatchGroupAdmin, 'deadLetters' | 'retryDeadLetter' | 'skipDeadLetter'>;

type DeadLetterRow = Omit<DeadLetter, 'point'> & {
  readonly group: bigint;
  readonly seq: bigint;
  readonly position: bigint;
};

/** Of a dead letter `d` in a stream `s`. */
function deadLetterColumns(sql: Sql): Fragment {
  return sql`d.watch_group as "group", d.id, d.stream, d.lane, d.seq, d.position, s.tenant, d.event, d.type, d.attempts,
    d.reason, d.fence, d.parked_at as "parkedAt"`;
}

function toDeadLetter(row: DeadLetterRow): DeadLetter {
  const { id, fence, stream, lane, seq, position, tenant, event, type, attempts, reason, parkedAt } = row;
  return { id, fence, stream, lane, point: { seq, position }, tenant, event, type, attempts, reason, parkedAt };
}

export function groupDeadLetters(sql: Sql): DeadLetters {
  return {
    async park({ group, stream, lane, fence }: HeldLane, parking: Parking): Promise<ParkingResult> {
      const { point, event, type, attempts, reason } = parking;
      const [row] = await guarded(
        'watch group',
        () => sql<{ result: ParkingResult }[]>`
        select plumbline.park_event(${String(group)}::bigint, ${String(stream)}::bigint, ${lane}::integer,
          ${String(fence)}::bigint, ${String(point.seq)}::bigint, ${String(point.position)}::bigint, ${event}, ${type},
          ${attempts}::integer, ${reason}, ${MAX_DEAD_LETTERS}) as result`,
      );
      if (!row) throw new Error('park_event gave no row');
      return row.result;
    },

    async deliverDeadLetters(member: bigint, retries: readonly Retry[]): Promise<readonly DeadLetter[]> {
      if (retries.length === 0) return [];
      const rows = await guarded(
        'dead letters',
        () => sql<DeadLetterRow[]>`
        select ${deadLetterColumns(sql)} from plumbline.deliver_dead_letters(${String(member)}::bigint,
          ${retries.map(({ id }) => String(id))}::bigint[], ${retries.map(({ fence }) => String(fence))}::bigint[],
          ${PAGE_BYTES}) d join plumbline.stream s on s.id = d.stream
        order by d.id`,
      );
      return rows.map(toDeadLetter);
    },

    async deadLetters(group: bigint, after: bigint, limit: number): Promise<DeadLetterPage> {
      const rows = await guarded(
        'dead letters',
        () => sql<(DeadLetterRow & { readonly found: bigint })[]>`
        select * from (
          select *, count(*) over () as found, sum(octet_length(event)) over (order by id) - octet_length(event) as ahead
          from (
            select ${deadLetterColumns(sql)} from plumbline.group_dead_letter d join plumbline.stream s on s.id = d.stream
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
