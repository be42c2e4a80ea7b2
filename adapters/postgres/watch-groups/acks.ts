/** Acks of watch groups: any number of them, of any lanes, in one statement. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { ackColumns } from '#adapters/postgres/watch-groups/lane-columns.ts';
import { isOpenSet, type TenantSet } from '#core/identity.ts';
import type { Ack, Acker, AckResult, DeadLetterRef, Nack, WatchGroups } from '#core/ports/watch-groups.ts';

type Acks = Pick<WatchGroups, 'ack' | 'nack' | 'ackDeadLetters' | 'nackDeadLetters'>;
type ResultRow = { readonly result: AckResult };

export function groupAcks(sql: Sql): Acks {
  return {
    async ack({ audience, owner, tenants }: Acker, acks: readonly Ack[]): Promise<readonly AckResult[]> {
      if (acks.length === 0) return [];
      const t = tenantColumns(tenants);
      const a = ackColumns(acks);
      const rows = await guarded(
        'acks',
        () => sql<ResultRow[]>`
        select result from plumbline.ack_lanes(${audience}, ${owner}, ${t.names}::text[], ${t.isAllBut},
          ${a.groups}::bigint[], ${a.streams}::bigint[], ${a.lanes}::bigint[], ${a.fences}::bigint[], ${a.seqs}::bigint[], ${a.positions}::bigint[]) result`,
      );
      return rows.map(({ result }) => result);
    },

    async nack({ audience, owner, tenants }: Acker, nacks: readonly Nack[]): Promise<readonly AckResult[]> {
      if (nacks.length === 0) return [];
      const t = tenantColumns(tenants);
      const n = ackColumns(nacks);
      const rows = await guarded(
        'nacks',
        () => sql<ResultRow[]>`
        select result from plumbline.nack_lanes(${audience}, ${owner}, ${t.names}::text[], ${t.isAllBut},
          ${n.groups}::bigint[], ${n.streams}::bigint[], ${n.lanes}::bigint[], ${n.fences}::bigint[], ${n.seqs}::bigint[], ${n.positions}::bigint[],
          ${nacks.map(({ delayMs }) => String(delayMs))}::bigint[]) result`,
      );
      return rows.map(({ result }) => result);
    },

    ackDeadLetters: (acker: Acker, deadLetters: readonly DeadLetterRef[]) => endRetries(acker, deadLetters, true),
    nackDeadLetters: (acker: Acker, deadLetters: readonly DeadLetterRef[]) => endRetries(acker, deadLetters, false),
  };

  async function endRetries(
    { audience, owner, tenants }: Acker,
    deadLetters: readonly DeadLetterRef[],
    isConfirmed: boolean,
  ): Promise<readonly AckResult[]> {
    if (deadLetters.length === 0) return [];
    const t = tenantColumns(tenants);
    const rows = await guarded(
      'acks',
      () => sql<ResultRow[]>`
      select result from plumbline.end_retries(${audience}, ${owner}, ${t.names}::text[], ${t.isAllBut},
        ${deadLetters.map(({ group }) => String(group))}::bigint[], ${deadLetters.map(({ stream }) => String(stream))}::bigint[],
        ${deadLetters.map(({ id }) => String(id))}::bigint[], ${deadLetters.map(({ fence }) => String(fence))}::bigint[],
        ${isConfirmed}) result`,
    );
    return rows.map(({ result }) => result);
  }
}

/** A set of tenants as the functions take it: these, or all but these. */
function tenantColumns(tenants: TenantSet): { readonly names: readonly string[]; readonly isAllBut: boolean } {
  if (tenants === '*') return { names: [], isAllBut: true };
  return isOpenSet(tenants) ? { names: tenants.allBut, isAllBut: true } : { names: tenants, isAllBut: false };
}
