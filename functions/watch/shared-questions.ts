/**
 * Questions that many watches have when they begin, asked once: after a restart thousands come back, and each would ask
 * the database for the same things. Equal questions share an answer that was read after all of them were asked.
 */

import type { EventLog } from '#core/ports/event-log.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import { canonicalTenants } from '#core/identity.ts';
import { shareCallsByKey } from '#functions/watch/shared-call.ts';

export function withSharedRanges(log: EventLog): EventLog {
  return { ...log, ranges: shareCallsByKey((streams) => streams.join(), log.ranges) };
}

export function withSharedLists(streams: StreamDirectory): StreamDirectory {
  return {
    ...streams,
    list: shareCallsByKey(
      ({ tenants }, alsoIds = []) => `${JSON.stringify(canonicalTenants(tenants))} ${alsoIds.join()}`,
      streams.list,
    ),
  };
}
