import { expect, test } from 'vitest';
import type { FetchAnswer, FetchedTopic } from '#adapters/kafka/wire/fetch-answer.ts';
import type { FetchOptions } from '#adapters/kafka/reading/fetch-request.ts';
import type { SessionRequest } from '#adapters/kafka/reading/fetch-session.ts';
import { createPoller, type Poller } from '#adapters/kafka/reading/poller.ts';
import { TailReader } from '#adapters/kafka/reading/tail-reader.ts';
import { ORIGIN } from '#core/ports/event-log.ts';

const SESSION_NOT_FOUND = 70;
const UNKNOWN_SERVER_ERROR = -1;

test('all that wait are in one long poll, and a request names only what has changed', async () => {
  const { poller, sent, answer } = world();
  for (const topic of ['a', 'b', 'c']) poller.offer(reader(topic));
  await settle();
  expect(sent.map(({ topics, connection }) => [topics, connection])).toEqual([[['a', 'b', 'c'], 'fetches']]);
  await answer(sent[0], 'b');
  expect(sent[1]).toMatchObject({ topics: [], connection: 'fetches', maxWaitMs: 500 });
});

test('who comes during a long poll is fetched at once by the other way, until the long one ends; then all are together', async () => {
  const { poller, sent, answer } = world();
  poller.offer(reader('a'));
  await settle();
  poller.offer(reader('b'));
  await settle();
  expect(sent[1]).toMatchObject({ topics: ['b'], connection: 'requests', maxWaitMs: 25 });
  await answer(sent[1]);
  expect(sent[2]).toMatchObject({ topics: ['b'], connection: 'requests' });
  // The long one ends while the short one is under way: the next one is short too, so that they meet.
  await answer(sent[0]);
  expect(sent[3]).toMatchObject({ topics: [], connection: 'fetches', maxWaitMs: 25 });
  await answer(sent[2]);
  expect(sent).toHaveLength(4);
  await answer(sent[3]);
  expect(sent[4]).toMatchObject({ topics: ['b'], connection: 'fetches', maxWaitMs: 500 });
});

test('a reader that is withdrawn is not given what was under way for it', async () => {
  const { poller, sent, answer, given } = world();
  const [one, other] = [reader('a'), reader('b')];
  for (const each of [one, other]) poller.offer(each);
  await settle();
  poller.withdraw(one);
  await answer(sent[0], 'a', 'b');
  expect(given).toEqual([other]);
  expect(one.flight).toBeUndefined();
  expect(sent[1]).toMatchObject({ forgotten: ['a'] });
});

test('readers of one topic that are at one place share its fetch, those at others take turns', async () => {
  const { poller, sent, answer, given } = world();
  const [early, late, alike] = [reader('a', 3n), reader('a', 9n), reader('a', 3n)];
  for (const each of [early, late, alike]) poller.offer(each);
  await settle();
  await answer(sent[0], 'a');
  expect(given).toEqual([early, alike]);
  await answer(sent[1], 'a');
  expect(given[2]).toBe(late);
});

test('when the broker has forgotten the session, the next request tells all, first those that got nothing', async () => {
  const { poller, sent, answer } = world();
  for (const topic of ['a', 'b']) poller.offer(reader(topic));
  await settle();
  await answer(sent[0], 'a');
  await refuse(sent[1], SESSION_NOT_FOUND);
  expect(sent[2]).toMatchObject({ topics: ['b', 'a'], sessionEpoch: 0 });
});

test('when the broker does not answer, or refuses the whole request, it ends and lets its readers go', async () => {
  for (const how of ['rejected', 'refused'] as const) {
    const { poller, sent, failures } = world();
    const all = ['a', 'b', 'c'].map((topic) => reader(topic));
    for (const each of all.slice(0, 2)) poller.offer(each);
    await settle();
    if (how === 'rejected') sent[0]!.reject(new Error('away'));
    else await refuse(sent[0], UNKNOWN_SERVER_ERROR);
    await settle();
    poller.offer(all[2]!);
    await settle();
    expect(failures).toEqual([expect.any(Error)]);
    expect(all.map(({ flight }) => flight)).toEqual([undefined, undefined, undefined]);
    expect(sent).toHaveLength(1);
  }
});

interface Sent extends PromiseWithResolvers<FetchAnswer> {
  readonly topics: readonly string[];
  readonly forgotten: readonly string[];
  readonly sessionEpoch: number;
  readonly maxWaitMs: number;
  readonly connection: FetchOptions['connection'];
}

interface World {
  readonly poller: Poller;
  readonly sent: readonly Sent[];
  readonly given: readonly TailReader[];
  readonly failures: readonly unknown[];
  /** With nothing, but for these topics. */
  answer(fetch: Sent | undefined, ...topics: readonly string[]): Promise<void>;
}

function world(): World {
  const sent: Sent[] = [];
  const given: TailReader[] = [];
  const failures: unknown[] = [];
  const poller: Poller = createPoller({
    fetch({ places, forgotten, sessionEpoch }: SessionRequest, { maxWaitMs, connection }) {
      const answer = Promise.withResolvers<FetchAnswer>();
      sent.push({ ...answer, topics: [...places.keys()], forgotten, sessionEpoch, maxWaitMs, connection });
      return answer.promise;
    },
    // There was nothing in it.
    onFetched(each: TailReader) {
      given.push(each);
      poller.offer(each);
    },
    onFailed: (error) => void failures.push(error),
  });
  return { poller, sent, given, failures, answer };

  async function answer(fetch: Sent | undefined, ...topics: readonly string[]): Promise<void> {
    fetch?.resolve({
      errorCode: 0,
      sessionId: fetch.sessionEpoch < 0 ? 0 : 1,
      clientSideThrottleTime: 0,
      topics: topics.map((topic): FetchedTopic => {
        return { topic, errorCode: 0, highWatermark: 0n, batches: Buffer.alloc(0) };
      }),
    });
    await settle();
  }
}

async function refuse(fetch: Sent | undefined, errorCode: number): Promise<void> {
  fetch?.resolve({ errorCode, sessionId: 0, clientSideThrottleTime: 0, topics: [] });
  await settle();
}

function reader(topic: string, offset: bigint = 0n): TailReader {
  const made = new TailReader(1n, ORIGIN);
  made.place = { topic, offset };
  void made.next();
  return made;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
}
