/** Acks of watch groups: any number of them, of any lanes, in one statement. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { ackColumns } from '#adapters/postgres/watch-groups/lane-columns.ts';
import type { Ack, AckResult, GroupOwner, Nack, WatchGroups } from '#core/ports/watch-groups.ts';

type Acks = Pick<WatchGroups, 'ack' | 'nack' | 'ackDeadLetters' | 'nackDeadLetters'>;
type LetterRef = Parameters<WatchGroups['ackDeadLetters']>[1][number];
type ResultRow = { readonly result: AckResult };

export function groupAcks(sql: Sql): Acks {
  return {
    async ack({ audience, owner }: GroupOwner, acks: readonly Ack[]): Promise<readonly AckResult[]> {
      if (acks.length === 0) return [];
      const a = ackColumns(acks);
      const rows = await guarded(
        'acks',
        () => sql<ResultRow[]>`
        select result from plumbline.ack_lanes(${audience}, ${owner}, ${a.groups}::bigint[], ${a.streams}::bigint[],
          ${a.lanes}::bigint[], ${a.fences}::bigint[], ${a.seqs}::bigint[], ${a.positions}::bigint[]) result`,
      );
      return rows.map(({ result }) => result);
    },

    async nack({ audience, owner }: GroupOwner, nacks: readonly Nack[]): Promise<readonly AckResult[]> {
      if (nacks.length === 0) return [];
      const n = ackColumns(nacks);
      const rows = await guarded(
        'nacks',
        () => sql<ResultRow[]>`
        select result from plumbline.nack_lanes(${audience}, ${owner}, ${n.groups}::bigint[], ${n.streams}::bigint[],
          ${n.lanes}::bigint[], ${n.fences}::bigint[], ${n.seqs}::bigint[], ${n.positions}::bigint[],
          ${nacks.map(({ delayMs }) => String(delayMs))}::bigint[]) result`,
      );
      return rows.map(({ result }) => result);
    },

    ackDeadLetters: (owner: GroupOwner, letters: readonly LetterRef[]) => endRetries(owner, letters, true),
    nackDeadLetters: (owner: GroupOwner, letters: readonly LetterRef[]) => endRetries(owner, letters, false),
  };

  async function endRetries(
    { audience, owner }: GroupOwner,
    letters: readonly LetterRef[],
    isConfirmed: boolean,
  ): Promise<readonly AckResult[]> {
    if (letters.length === 0) return [];
    const rows = await guarded(
      'acks',
      () => sql<ResultRow[]>`
      select result from plumbline.end_retries(${audience}, ${owner},
        ${letters.map(({ group }) => String(group))}::bigint[], ${letters.map(({ id }) => String(id))}::bigint[],
        ${isConfirmed}) result`,
    );
    return rows.map(({ result }) => result);
  }
}
