/**
 * The members of groups in this process, together: one call renews all of them, one asks for their lanes, one stores
 * their marks, one asks for the acks that other processes took. Their groups are settled one by one, beside all that.
 */

import type { CursorKeyRing } from '#core/ports/cursor-keys.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import { isUnavailable } from '#core/status-error.ts';
import type { DeadLetterRef, HeldLane, WatchGroups } from '#core/ports/watch-groups.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import { Assignments } from '#functions/watch/groups/assignments.ts';
import { DeadLetters, type DeadLettersDeps } from '#functions/watch/groups/dead-letters.ts';
import { HeldRuns } from '#functions/watch/groups/held-runs.ts';
import { Slots } from '#functions/watch/slots.ts';
import { Job } from '#functions/watch/groups/job.ts';
import { Leaving } from '#functions/watch/groups/leaving.ts';
import type { GroupKeeper } from '#functions/watch/groups/keeper.ts';
import type { GroupSession } from '#functions/watch/groups/session.ts';
import { GroupSessions } from '#functions/watch/groups/sessions.ts';
import { storeMarks } from '#functions/watch/groups/store-marks.ts';
import { TokenAge } from '#functions/watch/groups/token-age.ts';
import { groupDeleted, leaseLost } from '#functions/watch/watch-errors.ts';

export interface CoordinatorDeps
  extends
    Omit<GroupKeeper, 'slots' | 'heldRuns' | 'park' | 'deadLetters' | 'reload' | 'ended' | 'onFilterFailed'>,
    Pick<DeadLettersDeps, 'onDeadLettersFull'> {
  readonly onFilterError: () => void;
  readonly groups: WatchGroups;
  readonly streams: StreamDirectory;
}

/** A renewal that fails is made again twice before it is too late. */
export const LEASE_MS = 6_000;
const RENEW_MS = 2_000;
/** Lanes of who died are with others this long after its lease. */
const SETTLE_MS = 2_000;
const TICK_MS = 100;
const DELIVERED_MARKS_MS = 250;
/** What is of no concern to a group moves its position this often. */
const MOVED_MARKS_MS = 3_000;
/** At once, for all lanes that are behind. */
const MAX_READS = 16;

export interface ConfirmedLane extends HeldLane {
  readonly point: LogPoint;
}

export class GroupCoordinator {
  readonly keeper: GroupKeeper;
  readonly #deps: CoordinatorDeps;
  readonly #sessions = new GroupSessions();
  readonly #leaving: Leaving;
  readonly #lifetime = new AbortController();
  readonly #jobs: Readonly<Record<'renew' | 'settle' | 'mark' | 'look' | 'reseal', Job>>;
  readonly #assignments: Assignments;
  readonly #ticker: NodeJS.Timeout;
  readonly #tokenAge = new TokenAge();
  /** Ack tokens from before this moment may open no more. */
  #outdatedBeforeMs = -Infinity;
  #renewedAtMs = 0;
  #settledAtMs = 0;
  #markedAtMs = 0;
  #movedAtMs = 0;

  constructor(deps: CoordinatorDeps) {
    this.#deps = deps;
    const { signal } = this.#lifetime;
    const reload = (group: bigint): void => this.#assignments.reload([group]);
    const deadLetters = new DeadLetters({ ...deps, reload, signal });
    this.keeper = {
      ...deps,
      slots: new Slots(MAX_READS),
      heldRuns: new HeldRuns(),
      park: (lane, parking) => deadLetters.park(lane, parking),
      deadLetters: (membership, retries) => deadLetters.deliver(membership, retries),
      reload,
      ended: (member) => this.#ended(member),
      onFilterFailed: (group, message) => void this.#filterFailed(group, message),
    };
    const job = (call: () => Promise<void>): Job => new Job(call, deps.onError);
    this.#jobs = {
      renew: job(() => this.#renew()),
      settle: job(() => this.#settle()),
      mark: job(() => this.#mark()),
      look: job(() => this.#look()),
      reseal: job(() => this.#reseal()),
    };
    this.#leaving = new Leaving({ ...deps, marked: () => this.noteDeliveries() });
    this.#assignments = new Assignments({ ...deps, sessions: this.#sessions }, signal);
    deps.streams.onChange(() => this.#jobs.settle.ask(), signal);
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
  }

  /** The member's session takes part until it ends. */
  add(session: GroupSession): void {
    this.#sessions.add(session);
    this.#assignments.reload([session.membership.group]);
  }

  /** Confirmed in the database a moment ago. */
  confirmed(lanes: readonly ConfirmedLane[]): void {
    for (const lane of lanes) for (const session of this.#sessions.of(lane.group)) session.confirm(lane, lane.point);
  }

  /** What was delivered here until now is counted, should its lane begin anew. */
  async noteDeliveries(): Promise<void> {
    await this.#jobs.mark.made();
  }

  /** These deliveries of dead letters are done with, for better or worse. */
  deadLettersDone(delivered: readonly DeadLetterRef[]): void {
    for (const each of delivered) for (const session of this.#sessions.of(each.group)) session.deadLetterDone(each);
  }

  /** These lanes have begun anew. */
  begunAnew(lanes: readonly HeldLane[]): void {
    for (const held of lanes) for (const session of this.#sessions.of(held.group)) session.lanes.begunAnew(held);
    this.#assignments.reload(lanes.map(({ group }) => group));
  }

  /** Keys have changed: what members cannot ack any more is delivered again. */
  keysChanged(ring: CursorKeyRing, previous: CursorKeyRing): void {
    const beforeMs = this.#tokenAge.outdatedBefore(ring, previous, performance.now());
    if (beforeMs === undefined) return;
    this.#outdatedBeforeMs = beforeMs;
    this.#jobs.reseal.ask();
  }

  /** The sessions have ended; resolves when their lanes are free for others, or it was tried. */
  async stop(): Promise<void> {
    clearInterval(this.#ticker);
    this.#lifetime.abort();
    for (const job of [this.#assignments, ...Object.values(this.#jobs)]) job.stop();
    await this.#leaving.done();
  }

  #tick(): void {
    const sessions = this.#sessions.all;
    if (sessions.length === 0) return;
    const nowMs = performance.now();
    for (const session of sessions) session.tick(nowMs);
    if (nowMs - this.#renewedAtMs >= RENEW_MS) {
      this.#renewedAtMs = nowMs;
      this.#jobs.renew.ask();
    }
    if (nowMs - this.#settledAtMs >= SETTLE_MS) this.#jobs.settle.ask();
    if (nowMs - this.#markedAtMs >= DELIVERED_MARKS_MS) {
      this.#markedAtMs = nowMs;
      this.#jobs.mark.ask();
    }
    this.#jobs.look.ask();
    this.#jobs.reseal.tick();
    this.#assignments.tick();
  }

  async #renew(): Promise<void> {
    const members = this.#sessions.all.map(({ membership }) => membership.member);
    if (members.length === 0) return;
    const askedAtMs = performance.now();
    const alive = new Set(await this.#deps.groups.renew(members, LEASE_MS));
    const ended: GroupSession[] = [];
    for (const member of members) {
      const session = this.#sessions.find(member);
      if (alive.has(member)) session?.renewed(askedAtMs + LEASE_MS);
      else if (session) ended.push(session);
    }
    if (ended.length > 0) await this.#end(ended);
  }

  /** A statement for each group: none waits for all of them, and one that fails holds up no other. */
  async #settle(): Promise<void> {
    this.#settledAtMs = performance.now();
    const failures: unknown[] = [];
    for (const group of await this.#deps.groups.unsettled(this.#sessions.groups)) {
      if (this.#lifetime.signal.aborted) return;
      await this.#deps.groups.settle(group).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Their memberships are over, in the database. */
  async #end(sessions: readonly GroupSession[]): Promise<void> {
    const deletions = await this.#deps.groups.deletions(sessions.map(({ membership }) => membership.group));
    for (const session of sessions) {
      const deletion = deletions.find(({ group }) => group === session.membership.group);
      if (deletion) session.end(groupDeleted(deletion));
      else session.end(leaseLost(), 'lease');
    }
  }

  async #mark(): Promise<void> {
    const nowMs = performance.now();
    const ofMoves = nowMs - this.#movedAtMs >= MOVED_MARKS_MS;
    if (ofMoves) this.#movedAtMs = nowMs;
    await storeMarks(this.#deps.groups, this.#sessions.all, ofMoves);
  }

  /** Acks that come to this process are known at once; what waits for longer may have been acked elsewhere. */
  async #look(): Promise<void> {
    const beforeMs = performance.now() - TICK_MS;
    const awaited = this.#sessions.all.flatMap(({ lanes }) => lanes.awaited(beforeMs));
    if (awaited.length === 0) return;
    const points = await this.#deps.groups.confirmedPoints(awaited);
    this.confirmed(points.map(({ confirmed, ...held }) => ({ ...held, point: confirmed })));
  }

  async #reseal(): Promise<void> {
    const beforeMs = this.#outdatedBeforeMs;
    await this.noteDeliveries();
    const sessions = this.#sessions.all;
    const lanes = sessions.flatMap((session) => session.lanes.awaited(beforeMs));
    await this.#deps.groups.beginAnew(lanes);
    this.begunAnew(lanes);
    const withDeadLetters = sessions.filter((session) => session.lanes.deadLetters.forgetSent(beforeMs));
    this.#assignments.reload(withDeadLetters.map(({ membership }) => membership.group));
  }

  async #filterFailed(group: bigint, message: string): Promise<void> {
    this.#deps.onFilterError();
    await this.#deps.groups.noteFailure(group, message).catch((error: unknown) => {
      if (!isUnavailable(error)) this.#deps.onError(error);
    });
  }

  #ended(member: bigint): void {
    const session = this.#sessions.find(member);
    if (!session) return;
    this.#sessions.remove(session);
    const marks = session.lanes.takeMarks(true).map(({ mark }) => mark);
    this.#leaving.add(member, marks);
  }
}
