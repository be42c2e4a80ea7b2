/**
 * The alarm of an object with several kinds of work: there is one, and it outlives the object. It is set before a run
 * begins, so that what dies amid a run is begun again without anybody's request, and for what is due later. It is not taken
 * back: under load that would be two writes to the storage for each run, and an alarm that finds nothing owed costs less.
 */

export interface AlarmStorage {
  getAlarm(): Promise<number | null>;
  setAlarm(epochMs: number): Promise<void>;
}

export interface WakeUps<Work extends string> {
  /** A run begins; never two of one work at once. Resolves when the alarm is set that finds it dead. */
  begins(work: Work): Promise<void>;
  /** It has ended, and is due again in so many milliseconds; undefined: not by itself. */
  ends(work: Work, nextMs: number | undefined): Promise<void>;
  /** The alarm came. @returns whether something is to be run: it is due, or it is not known how the run before ended. */
  rang(): Promise<boolean>;
}

/** A run whose object died is begun again after this long. */
const FOUND_DEAD_MS = 5_000;

/** @param now the time of the alarms. */
export function createWakeUps<Work extends string>(
  storage: AlarmStorage,
  works: readonly Work[],
  now: () => number = Date.now,
): WakeUps<Work> {
  /** Of each work that this object has begun: when it is owed next. */
  const owedAtMs = new Map<Work, number | undefined>();
  const running = new Set<Work>();
  /** What the storage holds; undefined: not known. */
  let alarmAtMs: number | null | undefined;

  return {
    async begins(work) {
      running.add(work);
      owedAtMs.set(work, now() + FOUND_DEAD_MS);
      await keep();
    },
    async ends(work, nextMs) {
      running.delete(work);
      owedAtMs.set(work, nextMs === undefined ? undefined : now() + nextMs);
      await keep();
    },
    async rang() {
      alarmAtMs = null;
      const isOwed = works.some((work) => !running.has(work) && isDue(work));
      for (const work of running) owedAtMs.set(work, now() + FOUND_DEAD_MS);
      if (!isOwed) await keep();
      return isOwed;
    },
  };

  function isDue(work: Work): boolean {
    if (!owedAtMs.has(work)) return true;
    const atMs = owedAtMs.get(work);
    return atMs !== undefined && atMs <= now();
  }

  async function keep(): Promise<void> {
    if (alarmAtMs === undefined) alarmAtMs = await storage.getAlarm();
    const earliestMs = Math.min(...[...owedAtMs.values()].filter((atMs) => atMs !== undefined));
    if (earliestMs === Infinity || (alarmAtMs !== null && alarmAtMs <= earliestMs)) return;
    alarmAtMs = earliestMs;
    try {
      await storage.setAlarm(earliestMs);
    } catch (error) {
      alarmAtMs = undefined;
      throw error;
    }
  }
}
