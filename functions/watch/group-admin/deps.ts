import type { Cursors } from '#core/cursor.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import type { WatchGroupAdmin } from '#core/ports/watch-group-admin.ts';

export interface GroupAdminDeps {
  readonly groups: WatchGroupAdmin;
  readonly log: EventLog;
  readonly streams: StreamDirectory;
  readonly cursors: Cursors;
}
