import { expect, test } from 'vitest';
import { ABSENT, known, ObservationFailed, observe } from '#core/reconcile/observation.ts';

test.each([['there'], [''], [0], [false], [null]])('a read that gives %j has seen something', async (value) => {
  expect(await observe(async () => value)).toEqual({ state: 'present', value });
});

test('a read that gives nothing has seen that there is nothing', async () => {
  const observation = await observe(async () => undefined);
  expect(observation).toBe(ABSENT);
  expect(known(observation, 'it')).toBeUndefined();
});

test.each<[string, () => Promise<string>]>([
  ['rejects', () => Promise.reject(new Error('fog'))],
  [
    'throws',
    () => {
      throw new Error('fog');
    },
  ],
])('a read that %s has seen neither, and nothing follows from it', async (_what, read) => {
  const observation = await observe(read);
  expect(observation.state).toBe('unknown');
  expect(() => known(observation, 'the database')).toThrow(ObservationFailed);
  expect(() => known(observation, 'the database')).toThrow('the database cannot be read: fog');
});
