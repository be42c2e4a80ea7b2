/** A log without holes: the event after n is n + 1. What was lost in between is never passed over in silence. */

import type { StreamEvent } from '#core/event.ts';
import type { LogPoint } from '#core/ports/event-log.ts';

/** The log breaks its contract: events between two others are not there. */
export class LogHole extends Error {
  override readonly name = 'LogHole';
}

/** @throws {LogHole} when the events do not follow the point one by one. */
export function assertDense(stream: bigint, after: LogPoint, events: readonly StreamEvent[]): void {
  for (const [index, { seq }] of events.entries()) {
    const expected = after.seq + BigInt(index) + 1n;
    if (seq !== expected) throw new LogHole(`stream ${stream}: seq ${expected} is missing in the log; read was ${seq}`);
  }
}
