/** Where the events of streams begin that are kept. */

import type { EventLog } from '#core/ports/event-log.ts';
import type { Stream } from '#core/ports/streams.ts';

/**
 * Whoever asks a log for its ranges makes it write down what brokers have removed. So the database knows what is kept when
 * a group is to begin at the oldest event: what was gone before is no loss to it.
 */
export async function noteOldest(log: EventLog, streams: readonly Pick<Stream, 'id'>[]): Promise<void> {
  await log.ranges(streams.map(({ id }) => id));
}
