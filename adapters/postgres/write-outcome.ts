/** What came of a write: each answers its row in any case, and what became of it. */

import type { Fragment, Sql } from '#adapters/postgres/client.ts';
import { subject } from '#adapters/postgres/resource-columns.ts';
import type { Preconditions, Removal } from '#core/ports/resources.ts';
import { staleness } from '#core/preconditions.ts';
import type { ResourceKey, ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** A written row, or the row as it was found when the write did not happen. */
export type WrittenRow = ResourceRow & { readonly outcome: 'written' | 'marked' | 'gone' | 'kept' | 'fenced' };

export function toRemoval(row: WrittenRow): Removal {
  return { row, gone: row.outcome === 'gone' };
}

/** A write that found its row but did not happen was either refused by a precondition, or would have changed nothing. */
export function judge(
  row: WrittenRow | undefined,
  key: ResourceKey,
  preconditions: Preconditions,
  controller?: string,
): WrittenRow {
  if (!row)
    throw new StatusError('NotFound', `${subject(key)} not found`, { details: { name: key.name, kind: key.kind } });
  if (row.outcome === 'fenced') {
    const message = `controller ${controller} has reported with a higher fencing token: this lease was lost, and nothing is written`;
    throw new StatusError('Fenced', `${subject(key)}: ${message}`, {
      details: {
        name: key.name,
        kind: key.kind,
        uid: row.uid,
        causes: [{ reason: 'StaleFencingToken', message, field: 'fencingToken' }],
      },
    });
  }
  if (row.outcome !== 'kept') return row;
  const problem = staleness(row, preconditions);
  if (problem === undefined) return row;
  throw new StatusError('Conflict', `${subject(key)}: ${problem}`, {
    details: { name: key.name, kind: key.kind, uid: row.uid },
  });
}

/** Preconditions on the locked row `t`. The versions are compared as text: any text that is not the version is stale. */
export function holds(sql: Sql, { uid, resourceVersion }: Preconditions): Fragment {
  return sql`true
    ${uid === undefined ? sql`` : sql`and t.uid::text = ${uid}`}
    ${resourceVersion === undefined ? sql`` : sql`and t.resource_version::text = ${resourceVersion}`}`;
}
