import { expect, test } from 'vitest';
import { createFetchSession, withoutSession } from '#adapters/kafka/reading/fetch-session.ts';

const wanted = (places: Readonly<Record<string, number>>): Map<string, bigint> =>
  new Map(Object.entries(places).map(([topic, offset]) => [topic, BigInt(offset)]));

test('the first request names all, and asks for a session; the next ones name what has changed', () => {
  const session = createFetchSession();
  expect(session.request(wanted({ a: 1, b: 2 }))).toEqual({
    sessionId: 0,
    sessionEpoch: 0,
    places: wanted({ a: 1, b: 2 }),
    forgotten: [],
  });
  session.answered(77);
  expect(session.request(wanted({ a: 1, b: 3, c: 0 }))).toEqual({
    sessionId: 77,
    sessionEpoch: 1,
    places: wanted({ b: 3, c: 0 }),
    forgotten: [],
  });
  session.answered(77);
  expect(session.request(wanted({ c: 0 }))).toEqual({
    sessionId: 77,
    sessionEpoch: 2,
    places: new Map(),
    forgotten: ['a', 'b'],
  });
  session.answered(77);
  expect(session.request(wanted({ a: 1, c: 0 }))).toMatchObject({ places: wanted({ a: 1 }), forgotten: [] });
});

test('without a session at the broker, each request names all', () => {
  const session = createFetchSession();
  for (let round = 0; round < 3; round += 1) {
    expect(session.request(wanted({ a: 1 }))).toMatchObject({
      sessionId: 0,
      sessionEpoch: 0,
      places: wanted({ a: 1 }),
    });
    session.answered(0);
  }
});

test('after a failure it begins anew, in the place of the session that it had', () => {
  const session = createFetchSession();
  session.request(wanted({ a: 1, b: 1 }));
  session.answered(77);
  session.request(wanted({ a: 2, b: 1 }));
  session.reset();
  expect(session.request(wanted({ b: 1 }))).toEqual({
    sessionId: 77,
    sessionEpoch: 0,
    places: wanted({ b: 1 }),
    forgotten: [],
  });
  session.answered(78);
  expect(session.request(wanted({ b: 1 }))).toMatchObject({ sessionId: 78, sessionEpoch: 1, places: new Map() });
});

test('a fetch by itself asks for no session', () => {
  expect(withoutSession(wanted({ a: 1 }))).toMatchObject({ sessionId: 0, sessionEpoch: -1, forgotten: [] });
});
