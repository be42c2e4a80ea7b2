/** Parked events of watch groups. */

import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';
import type { AdminAct, DeadLetter, HeldLane, WatchGroups } from '#core/ports/watch-groups.ts';

type DeadLetters = Pick<WatchGroups, 'park' | 'deadLetters' | 'retryDeadLetter' | 'skipDeadLetter'>;

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

export function toDeadLetter({ group: _, seq, position, ...letter }: DeadLetterRow): DeadLetter {
  return { ...letter, point: { seq, position } };
}

export function groupDeadLetters(sql: Sql): DeadLetters {
  return {
    async park({ group, stream, lane, fence }: HeldLane, letter: Parameters<WatchGroups['park']>[1]): Promise<boolean> {
      const [row] = await guarded(
        'watch group',
        () => sql<{ isParked: boolean }[]>`
        select plumbline.park_event(${String(group)}::bigint, ${String(stream)}::bigint, ${lane}::integer,
          ${String(fence)}::bigint, ${String(letter.point.seq)}::bigint, ${String(letter.point.position)}::bigint,
          ${letter.event}, ${letter.type}, ${letter.attempts}::integer, ${letter.reason}) as "isParked"`,
      );
      return row?.isParked ?? false;
    },

    async deadLetters(group: bigint, after: bigint, limit: number): Promise<readonly DeadLetter[]> {
      const rows = await guarded(
        'dead letters',
        () => sql<DeadLetterRow[]>`
        select ${letterColumns(sql)} from plumbline.group_dead_letter d join plumbline.stream s on s.id = d.stream
        where d.watch_group = ${String(group)}::bigint and d.id > ${String(after)}::bigint order by d.id limit ${limit}`,
      );
      return rows.map(toDeadLetter);
    },

    async retryDeadLetter(group: bigint, id: bigint, { by, reason }: AdminAct): Promise<boolean> {
      const [row] = await guarded(
        'dead letter',
        () => sql<{ isThere: boolean }[]>`
        select plumbline.retry_dead_letter(${String(group)}::bigint, ${String(id)}::bigint, ${by}, ${reason}) as "isThere"`,
      );
      return row?.isThere ?? false;
    },

    async skipDeadLetter(group: bigint, id: bigint, { by, reason }: AdminAct): Promise<boolean> {
      const [row] = await guarded(
        'dead letter',
        () => sql<{ isThere: boolean }[]>`
        select plumbline.skip_dead_letter(${String(group)}::bigint, ${String(id)}::bigint, ${by}, ${reason}) as "isThere"`,
      );
      return row?.isThere ?? false;
    },
  };
}
