/**
 * The members of groups in this process, together: one call renews all of them, one asks for their lanes, one stores
 * their marks, one asks for the acks that other processes took.
 */

import type { StreamDirectory } from '#core/ports/streams.ts';
import type { HeldLane, LaneMark, WatchGroups } from '#core/ports/watch-groups.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import { Assignments } from '#functions/watch/groups/assignments.ts';
import { HeldRuns } from '#functions/watch/groups/held-runs.ts';
import { Slots } from '#functions/watch/slots.ts';
import { Turns } from '#functions/watch/turns.ts';
import { pause } from '#loop/pause.ts';
import { Job } from '#functions/watch/groups/job.ts';
import type { GroupKeeper } from '#functions/watch/groups/keeper.ts';
import type { Lane } from '#functions/watch/groups/lane.ts';
import type { ParkedEvent } from '#functions/watch/groups/parked-event.ts';
import type { GroupSession } from '#functions/watch/groups/session.ts';
import { GroupSessions } from '#functions/watch/groups/sessions.ts';
import { storeMarks } from '#functions/watch/groups/store-marks.ts';
import { groupDeleted, leaseLost } from '#functions/watch/watch-errors.ts';

export interface CoordinatorDeps extends Omit<
  GroupKeeper,
  'slots' | 'heldRuns' | 'turns' | 'park' | 'reload' | 'ended'
> {
  readonly groups: WatchGroups;
  readonly streams: StreamDirectory;
}

/** A renewal that fails is made again twice before it is too late. */
export const LEASE_MS = 6_000;
const RENEW_MS = 2_000;
const TICK_MS = 100;
const DELIVERED_MARKS_MS = 250;
/** What is of no concern to a group moves its position this often. */
const MOVED_MARKS_MS = 3_000;
/** At once, for all lanes that are behind. */
const MAX_READS = 16;
const PARK_RETRY_MS = 1_000;

export interface ConfirmedLane extends HeldLane {
  readonly point: LogPoint;
}

export class GroupCoordinator {
  readonly keeper: GroupKeeper;
  readonly #deps: CoordinatorDeps;
  readonly #sessions = new GroupSessions();
  readonly #leaving = new Set<Promise<void>>();
  readonly #lifetime = new AbortController();
  readonly #jobs: Readonly<Record<'renew' | 'mark' | 'look', Job>>;
  readonly #assignments: Assignments;
  readonly #ticker: NodeJS.Timeout;
  #renewedAtMs = 0;
  #markedAtMs = 0;
  #movedAtMs = 0;

  constructor(deps: CoordinatorDeps) {
    this.#deps = deps;
    this.keeper = {
      ...deps,
      slots: new Slots(MAX_READS),
      heldRuns: new HeldRuns(),
      turns: new Turns(),
      park: (lane, letter) => this.#park(lane, letter),
      reload: (group) => this.#assignments.reload([group]),
      ended: (member) => this.#ended(member),
    };
    const job = (call: () => Promise<void>): Job => new Job(call, deps.onError);
    this.#jobs = {
      renew: job(() => this.#renew()),
      mark: job(() => this.#mark()),
      look: job(() => this.#look()),
    };
    const { signal } = this.#lifetime;
    this.#assignments = new Assignments({ ...deps, sessions: this.#sessions }, signal);
    // A new tenant's lanes are made by a renewal.
    deps.streams.onChange(() => this.#jobs.renew.ask(), signal);
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

  /** Parked events that were delivered again are done with, for better or worse. */
  lettersDone(letters: readonly { readonly group: bigint; readonly id: bigint }[]): void {
    for (const { group, id } of letters) for (const session of this.#sessions.of(group)) session.letterDone(id);
  }

  /** These lanes have begun anew. */
  begunAnew(lanes: readonly HeldLane[]): void {
    for (const held of lanes) for (const session of this.#sessions.of(held.group)) session.lanes.begunAnew(held);
    this.#assignments.reload(lanes.map(({ group }) => group));
  }

  /** The sessions have ended; resolves when their lanes are free for others, or it was tried. */
  async stop(): Promise<void> {
    clearInterval(this.#ticker);
    this.#lifetime.abort();
    for (const job of [this.#assignments, ...Object.values(this.#jobs)]) job.stop();
    await Promise.all(this.#leaving);
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
    if (nowMs - this.#markedAtMs >= DELIVERED_MARKS_MS) {
      this.#markedAtMs = nowMs;
      this.#jobs.mark.ask();
    }
    this.#jobs.look.ask();
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

  async #park(lane: Lane, letter: ParkedEvent): Promise<void> {
    try {
      if (await this.#deps.groups.park(lane.held, letter)) {
        lane.parked(letter.point);
        return;
      }
      lane.hasBegunAnew = true;
      this.#assignments.reload([lane.held.group]);
    } catch (error) {
      this.#deps.onError(error);
      await pause(PARK_RETRY_MS, this.#lifetime.signal);
    }
    lane.notParked();
  }

  #ended(member: bigint): void {
    const session = this.#sessions.find(member);
    if (!session) return;
    this.#sessions.remove(session);
    const marks = session.lanes.takeMarks(true).map(({ mark }) => mark);
    const leaving = this.#leave(member, marks);
    this.#leaving.add(leaving);
    void leaving.then(() => this.#leaving.delete(leaving));
  }

  async #leave(member: bigint, marks: readonly LaneMark[]): Promise<void> {
    try {
      // Behind those that are on their way: what they say of its lanes would come too late.
      await this.noteDeliveries();
      await this.#deps.groups.leave(member, marks);
    } catch (error) {
      // A lease that cannot be given back ends by itself.
      this.#deps.onError(error);
    }
  }
}
