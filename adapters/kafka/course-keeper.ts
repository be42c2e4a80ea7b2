/**
 * Keeps the tails of this process on a course: over one link, which is given up for another when it fails, and for none
 * when nobody has tailed for a while.
 */

import { Alarm, Growth } from '#adapters/kafka/alarm.ts';
import { type Course, createCourse } from '#adapters/kafka/course.ts';
import { type Link, openLink } from '#adapters/kafka/link.ts';
import type { Session, SessionDeps } from '#adapters/kafka/session.ts';
import type { TakeAnswer } from '#adapters/kafka/tail-answers.ts';
import type { TailReader } from '#adapters/kafka/tail-reader.ts';

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
  let isClosed = false;

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
      isClosed = true;
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
    if (isRunning || isClosed) return;
    isRunning = true;
    running = run();
  }

  function findOut(): void {
    isDoubted = true;
    alarm.ring();
  }

  function isWanted(): boolean {
    return !isClosed && (readers.size > 0 || performance.now() - wantedAtMs < LINGER_MS);
  }

  async function run(): Promise<void> {
    while (isWanted()) {
      try {
        link = await openLink(deps);
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

  /** Until it is to be given up. @throws what no broker answering throws. */
  async function stayOn(current: Link): Promise<void> {
    const heard = { isSilent: false };
    course = createCourse({
      link: current,
      patienceMs: patienceMs.current,
      onFetched: takeAnswer,
      onLeaderLost: findOut,
      onSilence() {
        heard.isSilent = true;
        alarm.ring();
      },
    });
    for (let failures = 0; isWanted() && !heard.isSilent;) {
      isDoubted = false;
      try {
        const unknown = await course.refresh(readers);
        failures = 0;
        reconnectMs.reset();
        if (unknown.length > 0) onUnknownTopic();
      } catch (error) {
        failures += 1;
        if (failures === MAX_FAILED_REFRESHES) throw error;
        isDoubted = true;
      }
      for (const reader of readers) offer(reader);
      await rest(heard);
    }
    if (heard.isSilent) lengthenPatience();
  }

  /** Until it is time to ask for the leaders again. */
  async function rest(heard: { readonly isSilent: boolean }): Promise<void> {
    if (!isDoubted) await alarm.wait(REFRESH_MS);
    if (!isDoubted) return;
    const nowMs = performance.now();
    if (nowMs - doubtedAtMs > CALM_MS) doubtMs.reset();
    doubtedAtMs = nowMs;
    restUntilMs = nowMs + doubtMs.next();
    for (let leftMs = 1; leftMs > 0 && !isClosed && !heard.isSilent; leftMs = restUntilMs - performance.now()) {
      await alarm.wait(leftMs);
    }
  }

  function lengthenPatience(): void {
    const nowMs = performance.now();
    if (nowMs - silentAtMs > CALM_MS + patienceMs.current) patienceMs.reset();
    silentAtMs = nowMs;
    patienceMs.next();
  }
}
