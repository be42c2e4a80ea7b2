/**
 * A fetch session (KIP-227): the broker remembers which topics are read from where, so a request names only what has
 * changed, and an answer only what is new. Without one, each fetch lists all topics, and its cost is theirs, not the news'.
 *
 * @see https://cwiki.apache.org/confluence/display/KAFKA/KIP-227%3A+Introduce+Incremental+FetchRequests+to+Increase+Partition+Scalability
 */

/** From which offset each topic is to be read. */
export type FetchPlaces = ReadonlyMap<string, bigint>;

export interface SessionRequest {
  readonly sessionId: number;
  readonly sessionEpoch: number;
  readonly places: FetchPlaces;
  readonly forgotten: readonly string[];
}

/** One fetch at a time. */
export interface FetchSession {
  /** The request that makes the broker read exactly these. */
  request(wanted: FetchPlaces): SessionRequest;
  /** It was answered without an error of its own. */
  answered(sessionId: number): void;
  /** What the broker knows is not known any more: the next request tells all. */
  reset(): void;
}

/** Asks for a new session, in the place of the one that is named. */
const INITIAL_EPOCH = 0;
const NO_SESSION = { sessionId: 0, sessionEpoch: -1 } as const;
const MAX_EPOCH = 2 ** 31 - 1;

export function createFetchSession(): FetchSession {
  let id = 0;
  let epoch = INITIAL_EPOCH;
  let known = new Map<string, bigint>();

  return {
    request(wanted) {
      const places = new Map<string, bigint>();
      for (const [topic, offset] of wanted) if (known.get(topic) !== offset) places.set(topic, offset);
      const forgotten = [...known.keys()].filter((topic) => !wanted.has(topic));
      known = new Map(wanted);
      return { sessionId: id, sessionEpoch: epoch, places, forgotten };
    },

    answered(sessionId) {
      id = sessionId;
      if (id === 0) known = new Map();
      epoch = id === 0 ? INITIAL_EPOCH : (epoch % MAX_EPOCH) + 1;
    },

    reset() {
      epoch = INITIAL_EPOCH;
      known = new Map();
    },
  };
}

/** For a fetch by itself. */
export function withoutSession(places: FetchPlaces): SessionRequest {
  return { ...NO_SESSION, places, forgotten: [] };
}
