/** What a member is sent, in order: events, dead letters, losses. Collected into few writes, none of them after the lease. */

import type { AckTokens } from '#core/ack-token.ts';
import { deadLetterJson, eventJson } from '#core/event-json.ts';
import type { EventType, StreamEvent } from '#core/event.ts';
import type { Audience } from '#core/identity.ts';
import { type LogPoint, pointOf } from '#core/ports/event-log.ts';
import type { SseSink } from '#core/ports/sse.ts';
import type { DeadLetter } from '#core/ports/watch-groups.ts';
import { sseFrame } from '#core/sse.ts';
import { FrameBytes } from '#functions/watch/frames.ts';
import { resyncFrame } from '#functions/watch/groups/group-frames.ts';
import type { Delivery, Lane } from '#functions/watch/groups/member/lane.ts';
import { Outlet } from '#functions/watch/outlet.ts';

const MAX_WRITE_CHARACTERS = 64 * 1024;

export class MemberWriter {
  readonly outlet: Outlet;
  readonly #tokens: AckTokens;
  readonly #audience: Audience;
  readonly #tokenOf = new WeakMap<Lane, (point: LogPoint) => string>();
  /** By this process's clock, `performance.now()`: what was collected is written before it only. */
  leaseEndsAtMs: number;
  #text = '';
  #sentCount = 0;

  constructor(sink: SseSink, tokens: AckTokens, audience: Audience, leaseEndsAtMs: number) {
    this.outlet = new Outlet(sink);
    this.#tokens = tokens;
    this.#audience = audience;
    this.leaseEndsAtMs = leaseEndsAtMs;
  }

  get isFull(): boolean {
    return this.#text.length >= MAX_WRITE_CHARACTERS || this.outlet.isFull;
  }

  event(lane: Lane, event: StreamEvent, type: EventType): void {
    const point = pointOf(event);
    const data = eventJson(event, type, lane.attributesAt(event.seq));
    lane.deliver(point, this.#sentCount++, performance.now());
    this.#text += sseFrame({ event: type, id: this.#token(lane, point), data });
  }

  deadLetter(lane: Lane, { id, fence, type, event, attempts }: DeadLetter): Delivery {
    const { group, stream } = lane.held;
    const data = deadLetterJson(event, id, { lane: lane.name, fence: lane.held.fence, attempt: attempts });
    const token = this.#tokens.ofDeadLetter({ group, stream, id, fence }, this.#audience);
    this.#text += sseFrame({ event: type, id: token, data });
    return { index: this.#sentCount++, atMs: performance.now() };
  }

  loss(lane: Lane, point: LogPoint): void {
    lane.deliverLoss(point, this.#sentCount++, performance.now());
    this.#text += resyncFrame(lane, this.#token(lane, point));
  }

  /** What is of no lane, behind what was collected; that is left out when the lease is over. */
  now(text: string): void {
    this.flush();
    this.outlet.write(new FrameBytes(text));
  }

  /** False when the lease is over: what was collected is dropped. */
  flush(): boolean {
    if (this.#text === '') return true;
    const isHeld = performance.now() < this.leaseEndsAtMs;
    if (isHeld) this.outlet.write(new FrameBytes(this.#text));
    this.#text = '';
    return isHeld;
  }

  #token(lane: Lane, point: LogPoint): string {
    const tokenOf = this.#tokenOf.get(lane) ?? this.#tokens.ofLane(lane.held, this.#audience);
    this.#tokenOf.set(lane, tokenOf);
    return tokenOf(point);
  }
}
