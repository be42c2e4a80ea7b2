/** Lanes and points as the columns that the functions of sql/0016_watch_group.sql take: arrays, since each call is one statement. */

import type { Ack, HeldLane, LaneMark } from '#core/ports/watch-groups.ts';

/** Arrays hold no nulls: what a mark does not tell. */
const NOTHING = '-1';

export interface LaneColumns {
  readonly groups: readonly string[];
  readonly streams: readonly string[];
  readonly lanes: readonly string[];
  readonly fences: readonly string[];
}

export function laneColumns(lanes: readonly HeldLane[]): LaneColumns {
  return {
    groups: lanes.map(({ group }) => String(group)),
    streams: lanes.map(({ stream }) => String(stream)),
    lanes: lanes.map(({ lane }) => String(lane)),
    fences: lanes.map(({ fence }) => String(fence)),
  };
}

export interface PointColumns {
  readonly seqs: readonly string[];
  readonly positions: readonly string[];
}

export function ackColumns(acks: readonly Ack[]): LaneColumns & PointColumns {
  return {
    ...laneColumns(acks),
    seqs: acks.map(({ point }) => String(point.seq)),
    positions: acks.map(({ point }) => String(point.position)),
  };
}

export function markColumns(
  marks: readonly LaneMark[],
): LaneColumns & PointColumns & { readonly delivered: readonly string[] } {
  return {
    ...laneColumns(marks),
    delivered: marks.map(({ delivered }) => (delivered === undefined ? NOTHING : String(delivered))),
    seqs: marks.map(({ confirmed }) => (confirmed ? String(confirmed.seq) : NOTHING)),
    positions: marks.map(({ confirmed }) => (confirmed ? String(confirmed.position) : NOTHING)),
  };
}
