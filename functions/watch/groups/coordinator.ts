/**
 * The members of groups in this process, together: one call renews all of them, one asks for their lanes, one stores
 * their marks, one asks for the acks that other processes took. Their groups are settled one by one, beside all that.
 */

import type { CursorKeyRing } from '#core/ports/cursor-keys.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import { isUnavailable } from '#core/status-error.ts';
import type { Ack, DeadLetterRef, HeldLane, WatchGroups } from '#core/ports/watch-groups.ts';
import { Assignments } from '#functions/watch/groups/assignments.ts';
import { DeadLetters, type DeadLettersDeps } from '#functions/watch/groups/dead-letters.ts';
import { HeldRuns } from '#functions/watch/groups/member/held-runs.ts';
import { Slots } from '#functions/watch/pacing/slots.ts';
import { Job } from '#functions/watch/groups/job.ts';
import { Leaving } from '#functions/watch/groups/leaving.ts';
import type { GroupKeeper } from '#functions/watch/groups/keeper.ts';
import { Renewals } from '#functions/watch/groups/renewals.ts';
import { Resealing } from '#functions/watch/groups/resealing.ts';
import type { GroupSession } from '#functions/watch/groups/member/session.ts';
import { GroupSessions } from '#functions/watch/groups/sessions.ts';
import { storeMarks } from '#functions/watch/groups/store-marks.ts';

export interface CoordinatorDeps
  extends
    Omit<GroupKeeper, 'slots' | 'heldRuns' | 'park' | 'deadLetters' | 'reload' | 'ended' | 'onFilterFailed'>,
    Pick<DeadLettersDeps, 'onDeadLettersFull'> {
  readonly onFilterError: () => void;
  readonly groups: WatchGroups;
  readonly streams: StreamDirectory;
}

/** Lanes of who died are with others this long after its lease. */
const SETTLE_MS = 2_000;
const TICK_MS = 100;
const DELIVERED_MARKS_MS = 250;
/** What is of no concern to a group moves its position this often. */
const MOVED_MARKS_MS = 3_000;
/** At once, for all lanes that are behind. */
const MAX_READS = 16;

export class GroupCoordinator {
  readonly keeper: GroupKeeper;
  readonly #deps: CoordinatorDeps;
  readonly #sessions = new GroupSessions();
  readonly #leaving: Leaving;
  readonly #lifetime = new AbortController();
  readonly #jobs: Readonly<Record<'settle' | 'mark' | 'look', Job>>;
  readonly #renewals: Renewals;
  readonly #assignments: Assignments;
  readonly #resealing: Resealing;
  readonly #ticker: NodeJS.Timeout;
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
      settle: job(() => this.#settle()),
      mark: job(() => this.#mark()),
      look: job(() => this.#look()),
    };
    this.#leaving = new Leaving({ ...deps, marked: () => this.noteDeliveries() });
    const shared = { ...deps, sessions: this.#sessions };
    this.#renewals = new Renewals(shared);
    this.#assignments = new Assignments(shared, signal);
    this.#resealing = new Resealing({
      ...shared,
      noteDeliveries: () => this.noteDeliveries(),
      begunAnew: (lanes) => this.begunAnew(lanes),
      reload: (groups) => this.#assignments.reload(groups),
    });
    deps.streams.onChange(() => this.#jobs.settle.ask(), signal);
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
  }

  /** The member's session takes part until it ends. */
  add(session: GroupSession): void {
    this.#sessions.add(session);
    this.#assignments.reload([session.membership.group]);
  }

  /** Confirmed in the database a moment ago. */
  confirmed(acks: readonly Ack[]): void {
    for (const ack of acks) for (const session of this.#sessions.of(ack.group)) session.confirm(ack, ack.point);
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
    this.#resealing.keysChanged(ring, previous);
  }

  /** The sessions have ended; resolves when their lanes are free for others, or it was tried. */
  async stop(): Promise<void> {
    clearInterval(this.#ticker);
    this.#lifetime.abort();
    for (const each of [this.#renewals, this.#assignments, this.#resealing, ...Object.values(this.#jobs)]) each.stop();
    await this.#leaving.done();
  }

  #tick(): void {
    const sessions = this.#sessions.all;
    if (sessions.length === 0) return;
    const nowMs = performance.now();
    for (const session of sessions) session.tick(nowMs);
    this.#renewals.tick(nowMs);
    if (nowMs - this.#settledAtMs >= SETTLE_MS) this.#jobs.settle.ask();
    if (nowMs - this.#markedAtMs >= DELIVERED_MARKS_MS) {
      this.#markedAtMs = nowMs;
      this.#jobs.mark.ask();
    }
    this.#jobs.look.ask();
    this.#resealing.tick();
    this.#assignments.tick();
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
    const marks = session.lanes.marks.take(true).map(({ mark }) => mark);
    this.#leaving.add(member, marks);
  }
}
