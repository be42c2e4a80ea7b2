/** Requests for records, of one broker, on one of the two connections that kafkajs has to each. */

import apiKeys from 'kafkajs/src/protocol/requests/apiKeys.js';
import { lookup, requests } from 'kafkajs/src/protocol/requests/index.js';
import type { Broker } from '#adapters/kafka/client/cluster.ts';
import { decodeFetchAnswer, type FetchAnswer } from '#adapters/kafka/wire/fetch-answer.ts';
import type { SessionRequest } from '#adapters/kafka/reading/fetch-session.ts';

export interface FetchOptions {
  /** How long the broker waits for the first new record. */
  readonly maxWaitMs: number;
  /** How long we wait for the whole answer. */
  readonly timeoutMs: number;
  /** Of the whole answer; the first batch in it comes whole, however large it is (KIP-74). */
  readonly maxBytes: number;
  /** Of each topic. */
  readonly maxTopicBytes: number;
  /**
   * A broker answers the requests of a connection one after the other. `fetches` is for those that wait long; on `requests`
   * they share the way with all other requests.
   */
  readonly connection: 'fetches' | 'requests';
}

/** Kafka 2.3. */
const VERSION = 11;
const CONNECTION_INDEX = { requests: 0, fetches: 1 } as const;
// Nobody's transaction can hold back what lies behind it; we write none.
const READ_UNCOMMITTED = 0;

/** @throws what kafkajs throws when there is no answer. */
export async function fetchFrom(
  broker: Broker,
  { sessionId, sessionEpoch, places, forgotten }: SessionRequest,
  { maxWaitMs, timeoutMs, maxBytes, maxTopicBytes, connection }: FetchOptions,
): Promise<FetchAnswer> {
  const definition = requests['Fetch'];
  const apiKey = apiKeys['Fetch'];
  if (!definition || apiKey === undefined || !broker.versions) throw new TypeError('no Fetch request can be made');
  const exchange = lookup(broker.versions)(apiKey, definition)({
    maxWaitTime: maxWaitMs,
    minBytes: 1,
    maxBytes,
    isolationLevel: READ_UNCOMMITTED,
    sessionId,
    sessionEpoch,
    topics: [...places].map(([topic, offset]) => ({
      topic,
      partitions: [{ partition: 0, fetchOffset: String(offset), maxBytes: maxTopicBytes }],
    })),
    forgottenTopics: forgotten.map((topic) => ({ topic, partitions: [0] })),
  });
  if (exchange.request.apiVersion !== VERSION) throw new Error('the Kafka brokers are older than 2.3');
  const way = await broker.connectionPool.getConnection(CONNECTION_INDEX[connection]);
  const answer = await way.send({
    ...exchange,
    requestTimeout: timeoutMs,
    response: { decode: async (bytes) => decodeFetchAnswer(bytes), parse: (decoded) => Promise.resolve(decoded) },
  });
  return answer as FetchAnswer;
}
