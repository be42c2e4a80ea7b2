import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createTally, type IsolateTally, type Tally } from '#infra/cloudflare/tally.ts';

let told: Tally[];
let tally: IsolateTally;

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  tally = createTally(async (one) => void told.push(one));
});
afterEach(() => vi.useRealTimers());

const answered = (code: number, method = 'GET'): void => tally.answered({ method, code, seconds: 0.25 });

test('answers of some seconds are told at once, each one time, the last too', async () => {
  const tellings: Promise<void>[] = [];
  for (const code of [200, 201, 503]) {
    answered(code);
    tellings.push(tally.tell());
  }
  tally.refused();
  await vi.advanceTimersByTimeAsync(5_000);
  await Promise.all(tellings);
  expect(told.map(({ answers, refused }) => [answers.map(({ code }) => code), refused])).toEqual([
    [[200, 201, 503], 1],
  ]);
  answered(204);
  const next = tally.tell();
  await vi.advanceTimersByTimeAsync(5_000);
  await next;
  expect(told[1]).toEqual({ answers: [{ method: 'GET', code: 204, seconds: 0.25 }], refused: 0 });
});

test('when the one that waits to tell was killed, a later one tells', async () => {
  answered(200);
  void tally.tell();
  // Its timer went with it.
  vi.clearAllTimers();
  await vi.advanceTimersByTimeAsync(16_000);
  answered(201);
  void tally.tell();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(told.flatMap(({ answers }) => answers).map(({ code }) => code)).toEqual([200, 201]);
});

test('methods that clients make up are one', async () => {
  for (const method of ['GET', 'BREW', 'PROPFIND']) answered(405, method);
  void tally.tell();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(told[0]?.answers.map(({ method }) => method)).toEqual(['GET', 'other', 'other']);
});
