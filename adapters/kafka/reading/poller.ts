/**
 * Fetches from one broker, for all tails whose events it leads. One long poll carries those that have nothing to do but
 * wait. A tail that comes while it is under way is not kept waiting: it gets short polls, on the broker's other connection,
 * until it can join.
 */

import type { FetchAnswer, FetchedTopic } from '#adapters/kafka/wire/fetch-answer.ts';
import type { FetchOptions } from '#adapters/kafka/reading/fetch-request.ts';
import { createFetchSession, type SessionRequest, withoutSession } from '#adapters/kafka/reading/fetch-session.ts';
import { errorOf } from '#adapters/kafka/client/requests.ts';
import type { TailReader } from '#adapters/kafka/reading/tail-reader.ts';

export interface PollerDeps {
  readonly fetch: (request: SessionRequest, options: Omit<FetchOptions, 'timeoutMs'>) => Promise<FetchAnswer>;
  /** What came for a reader, or what is wrong with its topic. */
  readonly onFetched: (reader: TailReader, fetched: FetchedTopic) => void;
  /** The broker gave no answer: the poller has ended. */
  readonly onFailed: (error: unknown) => void;
}

export interface Poller {
  /** It is ready: its place is fetched next. */
  offer(reader: TailReader): void;
  /** What is under way for it is not wanted any more. */
  withdraw(reader: TailReader): void;
  /** Lets all readers go. Nothing is fetched or told any more. */
  end(): void;
}

interface Flight {
  readonly isLong: boolean;
  readonly places: ReadonlyMap<string, bigint>;
  readonly readers: ReadonlyMap<string, readonly TailReader[]>;
}

const LONG_WAIT_MS = 500;
const SHORT_WAIT_MS = 25;
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_TOPIC_BYTES = 256 * 1024;
/**
 * The least time from one long poll to the next, for each topic in it, all of which a broker looks at each time. For 500
 * events/s in 500 topics, none at all costs the broker 55 % of a core, this 31 %, and a median of 2 ms more.
 */
const PAUSE_MS_PER_TOPIC = 0.01;
/** The broker has forgotten the session, or has another idea of it: the next request begins one anew. */
const SESSION_ERRORS: ReadonlySet<number> = new Set([70, 71]);

export function createPoller({ fetch, onFetched, onFailed }: PollerDeps): Poller {
  const waiting = new Set<TailReader>();
  const session = createFetchSession();
  let main: Flight | undefined;
  let express: Flight | undefined;
  let mainNotBeforeMs = 0;
  let isArranged = false;
  let isEnded = false;

  return {
    offer(reader) {
      waiting.add(reader);
      arrange();
    },
    withdraw(reader) {
      waiting.delete(reader);
      if (reader.flight === main || reader.flight === express) reader.flight = undefined;
    },
    end,
  };

  function end(): void {
    isEnded = true;
    waiting.clear();
    for (const flight of [main, express]) if (flight) letGo(flight);
  }

  /** Not at once: whoever takes its events in this turn comes along. */
  function arrange(): void {
    if (isArranged || isEnded || waiting.size === 0) return;
    isArranged = true;
    const pauseMs = main ? 0 : mainNotBeforeMs - performance.now();
    if (pauseMs < 1) setImmediate(depart);
    else setTimeout(depart, pauseMs);
  }

  function depart(): void {
    isArranged = false;
    if (isEnded) return;
    if (!main) void flyMain();
    else if (!express && main.isLong) void flyExpress();
  }

  async function flyMain(): Promise<void> {
    // With somebody on the other connection it is short, so that both end and all come together.
    const flight = gather(!express);
    if (!flight) return;
    main = flight;
    mainNotBeforeMs = performance.now() + flight.places.size * PAUSE_MS_PER_TOPIC;
    const answer = await fly(flight, session.request(flight.places), 'fetches');
    main = undefined;
    if (answer && answer.errorCode === 0) session.answered(answer.sessionId);
    else session.reset();
    land(flight, answer);
  }

  async function flyExpress(): Promise<void> {
    const flight = gather(false);
    if (!flight) return;
    express = flight;
    const answer = await fly(flight, withoutSession(flight.places), 'requests');
    express = undefined;
    land(flight, answer);
  }

  /** Those that wait; of several readers of a topic, those at one place. */
  function gather(isLong: boolean): Flight | undefined {
    const places = new Map<string, bigint>();
    const readers = new Map<string, TailReader[]>();
    const flight: Flight = { isLong, places, readers };
    for (const reader of waiting) {
      if (!reader.isReady || !reader.place) {
        waiting.delete(reader);
        continue;
      }
      const { topic, offset } = reader.place;
      const here = places.get(topic);
      if (here !== undefined && here !== offset) continue;
      places.set(topic, offset);
      const along = readers.get(topic);
      if (along) along.push(reader);
      else readers.set(topic, [reader]);
      waiting.delete(reader);
      reader.flight = flight;
    }
    return places.size > 0 ? flight : undefined;
  }

  async function fly(
    { isLong }: Flight,
    request: SessionRequest,
    connection: FetchOptions['connection'],
  ): Promise<FetchAnswer | undefined> {
    try {
      return await fetch(request, {
        maxWaitMs: isLong ? LONG_WAIT_MS : SHORT_WAIT_MS,
        maxBytes: MAX_BYTES,
        maxTopicBytes: MAX_TOPIC_BYTES,
        connection,
      });
    } catch (error) {
      fail(error);
      return undefined;
    }
  }

  function land(flight: Flight, answer: FetchAnswer | undefined): void {
    if (isEnded || !answer) return;
    if (answer.errorCode !== 0 && !SESSION_ERRORS.has(answer.errorCode)) {
      letGo(flight);
      fail(errorOf(answer.errorCode));
      return;
    }
    const gifts = answer.topics.flatMap((fetched) =>
      (flight.readers.get(fetched.topic) ?? [])
        .filter((reader) => reader.flight === flight)
        .map((reader) => ({ reader, fetched })),
    );
    for (const { reader } of gifts) reader.flight = undefined;
    // Who got nothing comes first the next time: without a session, a broker fills its answer in the request's order.
    for (const reader of letGo(flight)) waiting.add(reader);
    for (const { reader, fetched } of gifts) onFetched(reader, fetched);
    arrange();
  }

  function fail(error: unknown): void {
    if (isEnded) return;
    end();
    onFailed(error);
  }
}

/** Those that were still part of it. */
function letGo(flight: Flight): readonly TailReader[] {
  const released = [...flight.readers.values()].flat().filter((reader) => reader.flight === flight);
  for (const reader of released) reader.flight = undefined;
  return released;
}
