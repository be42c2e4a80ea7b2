import { expect, test } from 'vitest';
import { ORIGIN } from '#core/ports/event-log.ts';
import { StatusError } from '#core/status-error.ts';
import { resumeVector } from '#functions/watch/start-vector.ts';
import { fakeDirectory, fakeLog, plainCursors } from '#test/unit/functions/watch/fakes.ts';

test('a cursor may be ahead of the head, of which a reader can be, but not of the last number that was given', async () => {
  const range = { start: ORIGIN, head: { seq: 5n, position: 5n }, assigned: 8n };
  const log = { ...fakeLog(), ranges: async () => new Map([[1n, range]]) };
  const streams = await fakeDirectory(1).list({ tenants: '*' });
  const resume = async (seq: bigint): Promise<unknown> =>
    resumeVector(log, {
      tenants: '*',
      cursor: new Map([[1n, { seq, position: seq }]]),
      streams,
      seal: (vector) => plainCursors.seal(vector, 'public', '*'),
    });
  expect(await resume(8n)).toEqual(new Map([[1n, { seq: 8n, position: 8n }]]));
  const refusal = await resume(9n).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StatusError);
  expect(refusal).toMatchObject({ reason: 'StreamRecreated' });
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
