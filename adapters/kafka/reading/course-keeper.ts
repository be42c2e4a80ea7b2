/**
 * Keeps the tails of this process on a course: over one link, which is given up for another when it fails, and for none
 * when nobody has tailed for a while.
 */

import { Alarm, Growth } from '#adapters/kafka/client/alarm.ts';
import { type Course, createCourse } from '#adapters/kafka/reading/course.ts';
import { type Link, openLink } from '#adapters/kafka/client/link.ts';
import type { Session, SessionDeps } from '#adapters/kafka/client/session.ts';
import type { TakeAnswer } from '#adapters/kafka/reading/tail-answers.ts';
import type { TailReader } from '#adapters/kafka/reading/tail-reader.ts';

export interface CourseKeeperDeps extends SessionDeps {
  /** All tails that there are. */
  readonly readers: ReadonlySet<TailReader>;
  readonly takeAnswer: TakeAnswer;
  /** The brokers do not know a topic. */
  readonly onUnknownTopic: () => void;
}

export interface CourseKeeper {
  /** It is fetched as soon as that is possible, if it is ready. */
  offer(reader: TailReader): void;
  /** What is under way for it is not wanted any more. */
  withdraw(reader: TailReader): void;
  /** Who leads the topic is to be found out. */
  doubt(topic: string): void;
  /** There are news: what was looked for in vain is looked for again soon. */
  hurry(): void;
  readonly session: Session | undefined;
  close(): Promise<void>;
}

/** How often the brokers are asked who leads which topic. */
const REFRESH_MS = 2_000;
/** After this long without one, a doubt is cleared up at once. */
const CALM_MS = 5_000;
const LINGER_MS = 10_000;
const MAX_FAILED_REFRESHES = 2;

export function createCourseKeeper(deps: CourseKeeperDeps): CourseKeeper {
  const { readers, takeAnswer, onUnknownTopic, logger } = deps;
  const lifetime = new AbortController();
  const alarm = new Alarm();
  const doubtMs = new Growth(20, 1_000);
  const reconnectMs = new Growth(50, 2_000);
  // An answer may be large, and the network slow: what was too short once is longer the next time.
  const patienceMs = new Growth(4_000, 32_000);
  let link: Link | undefined;
  let course: Course | undefined;
  let running: Promise<void> | undefined;
  let isRunning = false;
  let isDoubted = false;
  let doubtedAtMs = Number.NEGATIVE_INFINITY;
  let silentAtMs = Number.NEGATIVE_INFINITY;
  let restUntilMs = 0;
  let wantedAtMs = Number.NEGATIVE_INFINITY;

  return {
    offer,
    withdraw: (reader) => course?.withdraw(reader),
    doubt(topic) {
      course?.doubt(topic);
      findOut();
    },
    hurry() {
      if (!isDoubted) return;
      doubtMs.reset();
      restUntilMs = 0;
      alarm.ring();
    },
    get session() {
      return link;
    },
    async close() {
      lifetime.abort();
      link?.end();
      alarm.ring();
      await running;
    },
  };

  function offer(reader: TailReader): void {
    wantedAtMs = performance.now();
    start();
    if (reader.isReady && course?.offer(reader) === false) findOut();
  }

  function start(): void {
    if (isRunning || lifetime.signal.aborted) return;
    isRunning = true;
    running = run();
  }

  function findOut(): void {
    isDoubted = true;
    alarm.ring();
  }

  function isWanted(): boolean {
    return !lifetime.signal.aborted && (readers.size > 0 || performance.now() - wantedAtMs < LINGER_MS);
  }

  async function run(): Promise<void> {
    while (isWanted()) {
      try {
        link = await openLink(deps, lifetime.signal);
        await stayOn(link);
      } catch (error) {
        logger.debug({ err: error }, 'the Kafka brokers cannot be read from; trying again');
      }
      course?.end();
      link?.end();
      course = link = undefined;
      if (isWanted()) await alarm.wait(reconnectMs.next());
    }
    isRunning = false;
  }

  /** @throws when it is to be given up. */
  async function stayOn(current: Link): Promise<void> {
    const silence: { error?: Error } = {};
    course = createCourse({
      link: current,
      patienceMs: patienceMs.current,
      onFetched: takeAnswer,
      onLeaderLost(error) {
        logger.debug({ err: error }, 'a Kafka broker cannot be read from; looking for another');
        findOut();
      },
      onSilence(error) {
        silence.error = error;
        lengthenPatience();
        // What waits for an answer waits no longer.
        current.end();
        alarm.ring();
      },
    });
    for (let failures = 0; isWanted();) {
      isDoubted = false;
      try {
        const unknown = await course.refresh(readers);
        failures = 0;
        reconnectMs.reset();
        if (unknown.length > 0) onUnknownTopic();
      } catch (error) {
        failures += 1;
        isDoubted = true;
        if (failures === MAX_FAILED_REFRESHES) throw error;
      }
      for (const reader of readers) offer(reader);
      if (!silence.error) await untilNextRefresh();
      if (silence.error) throw silence.error;
    }
  }

  async function untilNextRefresh(): Promise<void> {
    if (!isDoubted) await alarm.wait(REFRESH_MS);
    if (!isDoubted) return;
    const nowMs = performance.now();
    if (nowMs - doubtedAtMs > CALM_MS) doubtMs.reset();
    doubtedAtMs = nowMs;
    restUntilMs = nowMs + doubtMs.next();
    // At most a second: what rings meanwhile is only more doubt, or the end.
    while (isWanted() && performance.now() < restUntilMs) await alarm.wait(restUntilMs - performance.now());
  }

  function lengthenPatience(): void {
    const nowMs = performance.now();
    if (nowMs - silentAtMs > CALM_MS + patienceMs.current) patienceMs.reset();
    silentAtMs = nowMs;
    patienceMs.next();
  }
}
