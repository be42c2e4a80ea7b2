/**
 * Reads that many watchers need at the same moment, made once: after a restart thousands come back at about the same
 * cursors, and would ask the database for the same things each.
 */

import type { EventLog } from '#core/ports/event-log.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import { canonicalTenants } from '#core/identity.ts';
import { shareCallsByKey } from '#functions/watch/shared-call.ts';

/** The same log. Equal questions share an answer that was read after all of them were asked. */
export function withSharedReads(log: EventLog): EventLog {
  return {
    ranges: shareCallsByKey((streams) => streams.join(), log.ranges),
    read: shareCallsByKey(
      (stream, after, { maxCount, maxBytes }) => [stream, after.seq, after.position, maxCount, maxBytes].join(),
      log.read,
    ),
    tail: log.tail,
  };
}

/** The same directory, likewise. */
export function withSharedLists(streams: StreamDirectory): StreamDirectory {
  return {
    list: shareCallsByKey(
      ({ tenants }, alsoIds = []) => `${JSON.stringify(canonicalTenants(tenants))} ${alsoIds.join()}`,
      streams.list,
    ),
    onChange: streams.onChange,
  };
}
