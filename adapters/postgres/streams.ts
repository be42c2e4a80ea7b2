/** The directory of streams in PostgreSQL. Streams are opened and closed by the triggers of the Tenant objects. */

import { type Sql, guarded } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import { inTenant } from '#adapters/postgres/resource-columns.ts';
import { scoped } from '#adapters/postgres/scoped.ts';
import type { Scope } from '#core/identity.ts';
import type { Stream, StreamDirectory } from '#core/ports/streams.ts';

const CHANGE_FLOOR_MS = 2_000;

export function postgresStreams(sql: Sql): StreamDirectory {
  return {
    async list(scope: Scope, alsoIds: readonly bigint[] = []): Promise<readonly Stream[]> {
      return guarded(
        'streams',
        () => scoped(sql, scope)<Stream[]>`
          select s.id, s.tenant, s.closed_at is not null as closed,
            s.closed_at is not null and not exists (select from plumbline.outbox o where o.stream = s.id) as drained
          from plumbline.stream s
          where (s.closed_at is null or s.id = any (${alsoIds.map(String)}::bigint[]))
            and ${inTenant(sql, scope, undefined, sql`s.tenant`)}
          order by s.id`,
      );
    },

    onChange(listener: () => void, signal: AbortSignal): void {
      onNotification(sql, { channel: 'plumbline_stream', floorMs: CHANGE_FLOOR_MS }, listener, signal);
    },
  };
}
