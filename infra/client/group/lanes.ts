/**
 * Work by lane: one piece after the other on a lane, lanes side by side. What a lane lost by beginning anew is not begun
 * any more; the piece that runs then is told, and the next one waits for its end, whoever connected meanwhile. A dead
 * letter is not lost with its lane's fence: nobody sends it again.
 */

import type { LaneFence } from '#infra/client/group/delivery.ts';

export interface Work extends LaneFence {
  readonly isDeadLetter: boolean;
  /** The signal aborts when somebody else may have the lane by now. */
  run(signal: AbortSignal): Promise<void>;
}

interface Lane {
  /** The highest that was seen. */
  fence: bigint;
  /** Nothing more is to be expected with that fence. */
  isLost: boolean;
  queue: Work[];
  running: { readonly work: Work; readonly aborter: AbortController } | undefined;
}

export interface Lanes {
  /** Takes work; drops it when its lane has begun anew since. */
  push(work: Work): void;
  /** What was delivered on this lane with this fence, or a lower one, comes again, here or elsewhere, but for dead letters. */
  lose(lost: LaneFence): void;
  loseAll(): void;
  /** Begins nothing more; resolves when nothing runs. */
  close(): Promise<void>;
}

/**
 * @param concurrency how many lanes at once, at most.
 * @param onError what a piece of work threw; the lane goes on.
 */
export function createLanes(concurrency: number, onError: (error: unknown) => void): Lanes {
  const lanes = new Map<string, Lane>();
  /** Lanes with something to begin, in the order in which they came. */
  const due = new Set<Lane>();
  let running = 0;
  let isClosed = false;
  let becomeIdle: (() => void) | undefined;
  let closing: Promise<void> | undefined;

  return {
    push(work) {
      const lane = laneOf(work);
      if (isClosed || (!work.isDeadLetter && !isOfToday(work, lane))) return;
      lane.queue.push(work);
      begin(lane);
    },
    lose({ lane: name, fence }) {
      const lane = lanes.get(name);
      if (lane && fence >= lane.fence) drop(lane, isOfFence);
    },
    loseAll() {
      for (const [name, lane] of lanes) {
        drop(lane, () => true);
        // A member that comes back has other lanes.
        if (!lane.running) lanes.delete(name);
      }
    },
    close() {
      isClosed = true;
      due.clear();
      closing ??= running === 0 ? Promise.resolve() : new Promise((resolve) => (becomeIdle = resolve));
      return closing;
    },
  };

  function laneOf({ lane: name, fence }: LaneFence): Lane {
    const known = lanes.get(name);
    if (known) return known;
    const lane: Lane = { fence, isLost: false, queue: [], running: undefined };
    lanes.set(name, lane);
    return lane;
  }

  /** Whether the lane has not begun anew since; it may have before it. */
  function isOfToday({ fence }: LaneFence, lane: Lane): boolean {
    if (fence > lane.fence) {
      drop(lane, isOfFence);
      lane.fence = fence;
      lane.isLost = false;
    }
    return fence === lane.fence && !lane.isLost;
  }

  function drop(lane: Lane, isLost: (work: Work) => boolean): void {
    lane.isLost = true;
    lane.queue = lane.queue.filter((work) => !isLost(work));
    if (lane.running && isLost(lane.running.work)) lane.running.aborter.abort();
    if (lane.queue.length === 0) due.delete(lane);
  }

  function begin(lane: Lane): void {
    if (isClosed || lane.running || lane.queue.length === 0) return;
    if (running >= concurrency) {
      due.add(lane);
      return;
    }
    const work = lane.queue.shift();
    if (work) void run(lane, work);
  }

  async function run(lane: Lane, work: Work): Promise<void> {
    const aborter = new AbortController();
    lane.running = { work, aborter };
    running += 1;
    try {
      await work.run(aborter.signal);
    } catch (error) {
      onError(error);
    }
    running -= 1;
    lane.running = undefined;
    if (running === 0) becomeIdle?.();
    // Its own next piece has no advantage over lanes that wait.
    if (lane.queue.length > 0) due.add(lane);
    for (const next of due) {
      if (running >= concurrency) return;
      due.delete(next);
      begin(next);
    }
  }
}

function isOfFence({ isDeadLetter }: Work): boolean {
  return !isDeadLetter;
}
