/** What the database is to be told of one member's lanes: how far they were delivered, and how far they are done. */

import type { LaneMark } from '#core/ports/watch-groups.ts';
import type { Lane } from '#functions/watch/groups/member/lane.ts';
import type { StreamReading } from '#functions/watch/groups/member/stream-reading.ts';

/** A mark and whose it is, in case it cannot be stored. */
export interface TakenMark {
  readonly lane: Lane;
  readonly mark: LaneMark;
}

export class MemberMarks {
  /** Those that the member holds. */
  readonly #readings: ReadonlyMap<bigint, StreamReading>;
  /** Something was delivered on them that the database does not know of. */
  readonly #unmarked = new Set<Lane>();

  constructor(readings: ReadonlyMap<bigint, StreamReading>) {
    this.#readings = readings;
  }

  /** Something was delivered on it. */
  delivered(lane: Lane): void {
    this.#unmarked.add(lane);
  }

  /** Of deliveries, and if asked for of lanes that moved by themselves. */
  take(ofMoves: boolean): readonly TakenMark[] {
    const lanes = new Set(this.#unmarked);
    this.#unmarked.clear();
    if (ofMoves) {
      for (const reading of this.#readings.values()) {
        if (!reading.hasMoved) continue;
        // One that waits for acks, with nothing of concern behind them, is told of later.
        reading.hasMoved = [...reading.lanes.values()].some((lane) => !lane.isAtRest);
        for (const lane of reading.lanes.values()) lanes.add(lane);
      }
    }
    const marks: TakenMark[] = [];
    for (const lane of lanes) {
      const delivered = lane.takeDelivered();
      const confirmed = ofMoves || delivered !== undefined ? lane.takeConfirmed() : undefined;
      if (delivered !== undefined || confirmed) marks.push({ lane, mark: { ...lane.held, delivered, confirmed } });
    }
    return marks;
  }

  /** The mark was not stored. */
  restore({ lane, mark }: TakenMark): void {
    const reading = this.#readings.get(lane.held.stream);
    if (reading?.lanes.get(lane.held.lane) !== lane) return;
    lane.restore(mark.delivered, mark.confirmed);
    this.#unmarked.add(lane);
    reading.hasMoved = true;
  }

  /** What was delivered a moment ago is no attempt. */
  forgetDeliveries(): void {
    for (const lane of this.#unmarked) lane.takeDelivered();
    this.#unmarked.clear();
  }

  /** It is not held any more. */
  forget(lane: Lane): void {
    this.#unmarked.delete(lane);
  }

  clear(): void {
    this.#unmarked.clear();
  }
}
