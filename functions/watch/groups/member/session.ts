/**
 * One member of a group: one client's stream. It writes events only while its lease lasts by its own clock, so that a
 * process that was frozen writes none when it wakes up; the acks of those that were on their way then are fenced.
 */

import { isOpenSet, seesTenant } from '#core/identity.ts';
import type { LogPoint, LogRange } from '#core/ports/event-log.ts';
import type { AssignedLane, HeldLane, Membership, Retry } from '#core/ports/watch-groups.ts';
import { StatusError, toStatusError } from '#core/status-error.ts';
import { type Filter, FilterFailed } from '#functions/watch/filter/compile.ts';
import { errorFrame, tenantGoneFrame } from '#functions/watch/frames.ts';
import { AckClock } from '#functions/watch/groups/member/ack-clock.ts';
import { MemberDelivery } from '#functions/watch/groups/member/member-delivery.ts';
import { progressFrame } from '#functions/watch/groups/group-frames.ts';
import type { GroupSessionDeps } from '#functions/watch/groups/keeper.ts';
import type { MemberLanes } from '#functions/watch/groups/member/member-lanes.ts';
import { MemberWriter } from '#functions/watch/groups/member/member-writer.ts';
import type { TimedStream, WatchEnd } from '#functions/watch/timed-stream.ts';
import { filterFailed, leaseLost, unackedTooLong } from '#functions/watch/watch-errors.ts';

export class GroupSession implements TimedStream {
  readonly mode = 'group';
  readonly membership: Membership;
  readonly #deps: GroupSessionDeps;
  readonly #writer: MemberWriter;
  readonly #delivery: MemberDelivery;
  readonly #ackClock: AckClock;
  readonly #toldGone = new Set<string>();
  #isClosed = false;
  #endedBy: WatchEnd | undefined;

  constructor(deps: GroupSessionDeps) {
    this.#deps = deps;
    this.membership = deps.membership;
    this.#writer = new MemberWriter(deps.sink, deps.keeper.ackTokens, deps.audience, deps.leaseEndsAtMs);
    this.#ackClock = new AckClock(deps.ackWaitMs);
    this.#delivery = new MemberDelivery({
      ...deps,
      writer: this.#writer,
      flush: () => this.#flush(),
      onFailure: (error) => this.#fail(error),
    });
  }

  get lanes(): MemberLanes {
    return this.#delivery.lanes;
  }

  get filter(): Filter | undefined {
    return this.#deps.selection.filter;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get endedBy(): WatchEnd | undefined {
    return this.#endedBy;
  }

  /** With the last of them it ends. Undefined: it is open for what tenants come. */
  get namedTenants(): readonly string[] | undefined {
    const { tenants, tenantsAreNamed } = this.#deps;
    return tenantsAreNamed && !isOpenSet(tenants) ? tenants : undefined;
  }

  blockedMs(nowMs: number): number {
    return this.#writer.outlet.blockedMs(nowMs);
  }

  /** For what comes before the events. */
  write(text: string): void {
    this.#writer.now(text);
  }

  onDrain(): void {
    this.#writer.outlet.onDrain();
    this.#delivery.pump();
  }

  bookmark(): void {
    if (!this.#isClosed && !this.#writer.outlet.isFull) this.#writer.now(progressFrame());
  }

  finish(): void {
    if (this.#isClosed) return;
    this.#writer.outlet.end();
    this.closed();
  }

  end(error: StatusError, endedBy: WatchEnd = 'error'): void {
    if (this.#isClosed) return;
    this.#endedBy = endedBy;
    this.#writer.now(errorFrame(error, undefined));
    this.finish();
  }

  /** The connection is gone. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#writer.outlet.closed();
    this.#deps.keeper.ended(this.membership.member);
    this.#delivery.stop();
  }

  /** Takes lanes; those that it does not hold any more were dropped before. Tenants that are blocked wait. */
  take(assigned: readonly AssignedLane[], ranges: ReadonlyMap<bigint, LogRange>): void {
    if (this.#isClosed) return;
    const visible = assigned.filter(({ tenant }) => seesTenant({ tenants: this.#deps.tenants }, tenant));
    this.#delivery.take(visible, ranges);
  }

  /** All events of a tenant that is gone were acked. */
  tellGone(tenant: string): void {
    if (this.#isClosed) return;
    this.#toldGone.add(tenant);
    this.#writer.now(tenantGoneFrame(tenant, undefined));
  }

  /** All tenants that it named are gone, also those of which it held nothing. */
  endWithTenants(): void {
    if (this.#isClosed) return;
    for (const tenant of this.namedTenants ?? []) if (!this.#toldGone.has(tenant)) this.tellGone(tenant);
    this.#endedBy = 'tenant';
    this.finish();
  }

  /** Confirmed in the database, by whatever process. */
  confirm(held: HeldLane, point: LogPoint): void {
    this.#delivery.confirm(held, point);
  }

  /** A delivery of a dead letter is done with, for better or worse. */
  deadLetterDone(delivered: Retry): void {
    this.#delivery.deadLetterDone(delivered);
  }

  /** The membership lasts until then, by this process's clock. */
  renewed(leaseEndsAtMs: number): void {
    this.#writer.leaseEndsAtMs = leaseEndsAtMs;
  }

  /** Looks at the clock: the lease, what lies unacked, pauses that end. */
  tick(nowMs: number): void {
    if (this.#isClosed) return;
    if (nowMs >= this.#writer.leaseEndsAtMs) {
      this.end(leaseLost(), 'lease');
      return;
    }
    const clock = this.#ackClock.read(this.lanes.oldestUnacked(), nowMs);
    if (clock === 'over') this.end(unackedTooLong(this.#deps.ackWaitMs), 'ack');
    else if (clock === 'look') this.#deps.keeper.reload(this.membership.group);
    if (this.lanes.takeWake(nowMs)) this.#delivery.pumpAll();
  }

  #flush(): void {
    if (!this.#isClosed && !this.#writer.flush()) this.end(leaseLost(), 'lease');
  }

  #fail(error: unknown): void {
    const { keeper } = this.#deps;
    if (error instanceof FilterFailed) {
      keeper.onFilterFailed(this.membership.group, error.message);
      // They are not to blame: a filter that fails each time would use their attempts up.
      this.lanes.marks.forgetDeliveries();
      this.end(filterFailed(error, undefined));
      return;
    }
    if (!(error instanceof StatusError)) keeper.onError(error);
    this.end(toStatusError(error));
  }
}
