/** A member over a log in memory: what it was sent, and its keeper's doings in the test's hands. */

import type { AssignedLane, DeadLetter, Retry } from '#core/ports/watch-groups.ts';
import type { LogRange } from '#core/ports/event-log.ts';
import { laneOf } from '#core/lane.ts';
import { ORIGIN } from '#core/ports/event-log.ts';
import type { GroupKeeper } from '#functions/watch/groups/keeper.ts';
import { HeldRuns } from '#functions/watch/groups/member/held-runs.ts';
import { Slots } from '#functions/watch/pacing/slots.ts';
import { GroupSession } from '#functions/watch/groups/member/session.ts';
import { createSelection } from '#functions/watch/selection.ts';
import { Tails } from '#functions/watch/tail/tails.ts';
import { Turns } from '#functions/watch/pacing/turns.ts';
import { eventOf, fakeLog, type FakeLog } from '#test/unit/functions/watch/fakes.ts';

export const STREAM = 1n;

export interface TestMember {
  readonly log: FakeLog;
  readonly session: GroupSession;
  /** `ADDED 1-3`, `BOOKMARK ResyncRequired`, `ERROR Timeout`; in order. */
  readonly sent: readonly string[];
  readonly errors: readonly unknown[];
  /** Streams in which an event of another tenant was found. */
  readonly violations: readonly bigint[];
  /** What was taken out of its lane. */
  readonly parked: readonly bigint[];
  /** What the database has of dead letters, as they are delivered. */
  readonly deadLetters: DeadLetter[];
  /** What was asked of them. */
  readonly asked: readonly (readonly Retry[])[];
  /** What the network did not take yet. */
  readonly sink: { bufferedBytes: number };
  /** Gives it all lanes of the stream, each at this point. */
  takeAll(change?: Partial<AssignedLane>): Promise<void>;
}

export interface MemberOptions {
  readonly leaseMs?: number;
  readonly window?: number;
  /** @default one without end */
  readonly turns?: Turns;
  /** @default true */
  readonly tenantsAreNamed?: boolean;
}

export function testMember({
  leaseMs = 60_000,
  window = 64,
  turns = new Turns({ nowMs: () => 0 }),
  tenantsAreNamed = true,
}: MemberOptions = {}): TestMember {
  const log = fakeLog();
  const sent: string[] = [];
  const errors: unknown[] = [];
  const violations: bigint[] = [];
  const parked: bigint[] = [];
  const deadLetters: DeadLetter[] = [];
  const asked: (readonly Retry[])[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const sink = {
    bufferedBytes: 0,
    write: ({ plain }: { readonly plain: Uint8Array }) => sent.push(...framesOf(new TextDecoder().decode(plain))),
    end: () => undefined,
    destroy: () => undefined,
  };
  const keeper: GroupKeeper = {
    log,
    tails: new Tails({ log, onError }),
    ackTokens: {
      ofLane: () => (point) => String(point.seq),
      ofDeadLetter: ({ id }) => `dead letter ${id}`,
      open: () => 'malformed',
    },
    slots: new Slots(16),
    heldRuns: new HeldRuns(),
    turns,
    async park(lane, { point }) {
      parked.push(point.seq);
      lane.parked(point);
    },
    async deadLetters(_, retries) {
      asked.push(retries);
      return deadLetters.filter(({ id }) => retries.some((retry) => retry.id === id));
    },
    reload: () => undefined,
    ended: () => undefined,
    onRedelivery: () => undefined,
    onFilterFailed: () => undefined,
    onIsolationViolation: (stream) => violations.push(stream),
    onError,
  };
  const session = new GroupSession({
    keeper,
    sink,
    membership: { group: 1n, member: 1n, isNew: true, droppedAt: undefined },
    audience: 'public',
    tenants: ['t1'],
    tenantsAreNamed,
    selection: createSelection({}),
    limits: { window, maxAttempts: 16 },
    ackWaitMs: 30_000,
    leaseEndsAtMs: performance.now() + leaseMs,
  });
  return { log, session, sent, parked, deadLetters, asked, errors, violations, sink, takeAll };

  async function takeAll(change: Partial<AssignedLane> = {}): Promise<void> {
    const ranges: ReadonlyMap<bigint, LogRange> = await log.ranges([STREAM]);
    session.take(
      Array.from({ length: 16 }, (_, lane) => assigned(lane, change)),
      ranges,
    );
  }
}

export function assigned(lane: number, change: Partial<AssignedLane> = {}): AssignedLane {
  return {
    group: 1n,
    stream: STREAM,
    lane,
    fence: 1n,
    member: 1n,
    tenant: 't1',
    confirmed: ORIGIN,
    deliveredBefore: [],
    pauseMs: 0,
    isWanted: false,
    retries: [],
    ...change,
  };
}

/** As it is delivered with this fence. */
export function deadLetter(id: bigint, lane: number, change: Partial<DeadLetter> = {}): DeadLetter {
  return {
    id,
    fence: 2n,
    stream: STREAM,
    lane,
    tenant: 't1',
    point: ORIGIN,
    event: `{"id":"dead letter ${id}"}`,
    type: 'ADDED',
    attempts: 17,
    reason: 'a test',
    parkedAt: new Date(),
    ...change,
  };
}

export function laneOfSeq(seq: number): number {
  return laneOf(eventOf(STREAM, seq).subject.uid);
}

function framesOf(text: string): string[] {
  return [...text.matchAll(/event: (\w+)\n(?:id: .*\n)?data: (.*)\n/g)].map(([, event = '', data = '']) => {
    const { id, reason } = JSON.parse(data) as { id?: string; reason?: string };
    return `${event} ${id ?? reason}`;
  });
}
