import { expect, test, vi } from 'vitest';
import { type LogRange, ORIGIN } from '#core/ports/event-log.ts';
import { StatusError } from '#core/status-error.ts';
import { resumeVector } from '#functions/watch/start/start-vector.ts';
import { fakeDirectory, fakeLog, plainCursors } from '#test/unit/functions/watch/fakes.ts';

test('a cursor that cannot be read yet waits until it can, up to 3 s; one beyond all that was given is refused at once', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  const head = { seq: 5n, position: 5n };
  let range: LogRange = { start: ORIGIN, head, assigned: 8n };
  let looks = 0;
  const ranges = async (): Promise<ReadonlyMap<bigint, LogRange>> => new Map([[1n, (looks++, range)]]);
  const log = { ...fakeLog(), ranges };
  const streams = await fakeDirectory(1).list({ tenants: '*' });
  const resume = (seq: bigint): Promise<unknown> =>
    resumeVector(log, {
      tenants: '*',
      cursor: new Map([[1n, { seq, position: seq }]]),
      streams,
      seal: (vector) => plainCursors.seal(vector, 'public', '*'),
    }).catch((error: unknown) => error);
  expect(await resume(5n)).toEqual(new Map([[1n, head]]));
  expect(await resume(9n)).toMatchObject({ reason: 'StreamRecreated', code: 410 });
  expect(looks).toBe(2);

  const [waiting, refused] = [resume(8n), resume(8n)];
  await vi.advanceTimersByTimeAsync(2_999);
  expect(looks).toBeLessThan(20);
  await vi.advanceTimersByTimeAsync(1);
  for (const error of [await waiting, await refused]) {
    expect(error).toBeInstanceOf(StatusError);
    expect(error).toMatchObject({
      reason: 'Timeout',
      code: 504,
      details: { retryAfterSeconds: 1, causes: [{ reason: 'ResourceVersionTooLarge' }] },
    });
  }
  const patient = resume(8n);
  await vi.advanceTimersByTimeAsync(1_000);
  range = { start: ORIGIN, head: { seq: 8n, position: 8n }, assigned: 8n };
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await patient).toEqual(new Map([[1n, { seq: 8n, position: 8n }]]));
  vi.useRealTimers();
});

test('a cursor that is behind the events of a deleted tenant goes on at its end; behind those of a living one it is refused', async () => {
  const end = { seq: 5n, position: 5n };
  const log = { ...fakeLog(), ranges: async () => new Map([[1n, { start: end, head: end, assigned: 5n }]]) };
  const resume = async (closed: boolean): Promise<unknown> =>
    resumeVector(log, {
      tenants: '*',
      cursor: new Map([[1n, { seq: 2n, position: 2n }]]),
      streams: [{ id: 1n, tenant: 'acme', closed, drained: closed }],
      seal: (vector) => plainCursors.seal(vector, 'public', '*'),
    });
  expect(await resume(true)).toEqual(new Map([[1n, end]]));
  await expect(resume(false)).rejects.toMatchObject({ reason: 'Expired' });
});
