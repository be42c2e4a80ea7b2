/** The proof of the group chaos: what members wrote down, held against the log and what was parked. */

import type { Answered, Delivered, RecordLine, Sent } from '#test/fault/groups/records.ts';

export interface LoggedEvent {
  readonly lane: string;
  readonly seq: number;
  readonly uid: string;
}

export interface Evidence {
  readonly records: readonly RecordLine[];
  /** All events of all lanes, in the order of the log. */
  readonly log: readonly LoggedEvent[];
  readonly parked: readonly Pick<LoggedEvent, 'lane' | 'seq'>[];
  readonly maxAttempts: number;
}

/** What became of an ack; `lost` without an answer. */
type Fate = 'Acked' | 'Duplicate' | 'Fenced' | 'Unknown' | 'lost';
type Ack = Sent & { readonly fate: Fate };

export interface Findings {
  readonly violations: readonly string[];
  readonly deliveries: number;
  readonly redeliveries: number;
  readonly members: number;
  readonly fates: Readonly<Record<string, number>>;
}

export function judge({ records, log, parked, maxAttempts }: Evidence): Findings {
  const violations: string[] = [];
  const deliveries = records.filter((line): line is Delivered => line.what === 'delivered');
  const acks = acksOf(records);
  const parkedPlaces = new Set(parked.map(place));
  const logOfLanes = Map.groupBy(log, ({ lane }) => lane);
  const acksOfLanes = Map.groupBy(acks, ({ lane }) => lane);
  const runs = [...Map.groupBy(deliveries, ({ lane, fence }) => `${lane} fence ${fence}`).entries()];
  for (const [name, run] of runs) judgeRun(name, run);
  for (const [lane, events] of logOfLanes) judgeLane(lane, events);
  for (const [uid, events] of Map.groupBy(deliveries, (line) => line.uid)) judgeObject(uid, events);
  const fates: Record<string, number> = {};
  for (const { what, fate } of acks) fates[`${what} ${fate}`] = (fates[`${what} ${fate}`] ?? 0) + 1;
  return {
    violations,
    deliveries: deliveries.length,
    redeliveries: deliveries.length - new Set(deliveries.map(place)).size,
    members: new Set(deliveries.map(({ member }) => member)).size,
    fates,
  };

  /** What was delivered under one fence: to one member, in order, and without a gap behind what was confirmed. */
  function judgeRun(name: string, run: readonly Delivered[]): void {
    const members = new Set(run.map(({ member }) => member));
    if (members.size > 1) violations.push(`${name} was held by the members ${[...members].join(', ')}`);
    const [first] = run;
    if (!first) return;
    const inOrder = run.toSorted((a, b) => a.atMs - b.atMs);
    const events = logOfLanes.get(first.lane) ?? [];
    const indexes = new Map(events.map(({ seq }, index) => [seq, index]));
    const sure = lastConfirmedBefore(first, ({ fate }) => fate === 'Acked');
    const possible = lastConfirmedBefore(first, mayHaveConfirmed);
    let previous = sure;
    for (const { seq, uid, attempt } of inOrder) {
      if (seq <= previous) violations.push(`${name}: event ${seq} came after event ${previous}`);
      const index = indexes.get(seq);
      if (index === undefined || events[index]?.uid !== uid)
        violations.push(`${name}: event ${seq} is not of this lane`);
      for (let at = (index ?? 0) - 1; (events[at]?.seq ?? 0) > Math.max(previous, possible); at -= 1) {
        const skipped = events[at];
        if (skipped && !parkedPlaces.has(place(skipped))) violations.push(`${name}: event ${skipped.seq} was left out`);
      }
      if (attempt > maxAttempts) violations.push(`${name}: event ${seq} came for the ${attempt}th time`);
      previous = Math.max(previous, seq);
    }
  }

  /** The highest that was confirmed on the lane before it began with this fence. */
  function lastConfirmedBefore({ lane, fence }: Delivered, isConfirming: (ack: Ack) => boolean): number {
    const before = (acksOfLanes.get(lane) ?? []).filter((ack) => ack.fence < fence && ack.what === 'ack');
    return before.filter(isConfirming).reduce((highest, { seq }) => Math.max(highest, seq), 0);
  }

  /** Acks of a lane confirm ranges one behind the other, each by the holder of its time; together all there is. */
  function judgeLane(lane: string, events: readonly LoggedEvent[]): void {
    const ofLane = acksOfLanes.get(lane) ?? [];
    const confirming = ofLane.filter(({ fate, what }) => what === 'ack' && fate === 'Acked');
    let highest: Ack | undefined;
    for (const ack of confirming.toSorted((a, b) => a.seq - b.seq || a.fence - b.fence)) {
      if (highest && ack.fence < highest.fence) {
        violations.push(
          `lane ${lane}: event ${ack.seq} was confirmed under fence ${ack.fence}, and ${highest.seq} under ${highest.fence} before`,
        );
      }
      highest = ack;
    }
    // Once a newer fence delivers, an older one confirms nothing.
    const begins = new Map<number, number>();
    for (const { fence, atMs } of deliveries.filter((line) => line.lane === lane)) {
      begins.set(fence, Math.min(atMs, begins.get(fence) ?? Infinity));
    }
    const begun = [...begins].toSorted(([a], [b]) => b - a);
    for (const ack of ofLane.filter(({ fate }) => fate === 'Acked')) {
      const newer = begun.find(([fence, atMs]) => fence > ack.fence && atMs < ack.atMs);
      if (newer)
        violations.push(`lane ${lane}: fence ${ack.fence} confirmed ${ack.seq} after fence ${newer[0]} delivered`);
    }
    const acked = new Map<number, number>();
    for (const ack of ofLane.filter(mayHaveConfirmed)) {
      acked.set(ack.fence, Math.max(ack.seq, acked.get(ack.fence) ?? 0));
    }
    const done = new Set(
      deliveries.filter((line) => line.lane === lane && line.seq <= (acked.get(line.fence) ?? 0)).map(({ seq }) => seq),
    );
    for (const event of events) {
      if (!done.has(event.seq) && !parkedPlaces.has(place(event))) {
        violations.push(`lane ${lane}: event ${event.seq} was neither confirmed by a member that had it nor parked`);
      }
    }
  }

  /** No event of an object comes for the first time before an earlier one has. */
  function judgeObject(uid: string, events: readonly Delivered[]): void {
    const firsts = new Map<number, number>();
    for (const { seq, atMs } of events) firsts.set(seq, Math.min(atMs, firsts.get(seq) ?? Infinity));
    let latest = 0;
    for (const [seq, atMs] of [...firsts].toSorted(([a], [b]) => a - b)) {
      if (atMs < latest) violations.push(`object ${uid}: event ${seq} came before an earlier one`);
      latest = Math.max(latest, atMs);
    }
  }
}

function mayHaveConfirmed({ what, fate }: Ack): boolean {
  return what === 'ack' && (fate === 'Acked' || fate === 'lost');
}

function acksOf(records: readonly RecordLine[]): Ack[] {
  const answers = new Map(
    records.filter((line): line is Answered => line.what === 'answered').map((line) => [line.id, line.results]),
  );
  const sent = records.filter((line): line is Sent => line.what === 'ack' || line.what === 'nack');
  return [...Map.groupBy(sent, ({ id }) => id)].flatMap(([id, tokens]) =>
    tokens.map((token, index) => ({ ...token, fate: answers.get(id)?.[index] ?? 'lost' })),
  );
}

function place({ lane, seq }: Pick<LoggedEvent, 'lane' | 'seq'>): string {
  return `${lane} ${seq}`;
}
