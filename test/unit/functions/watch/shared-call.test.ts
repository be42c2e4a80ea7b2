import { expect, test } from 'vitest';
import { shareCalls, shareCallsByKey } from '#functions/watch/shared-call.ts';

test('who asks while a call runs shares the next one, which begins after the question', async () => {
  const begun: PromiseWithResolvers<number>[] = [];
  const ask = shareCalls(() => {
    const call = Promise.withResolvers<number>();
    begun.push(call);
    return call.promise;
  });
  const together = [ask(), ask()];
  await Promise.resolve();
  expect(begun).toHaveLength(1);
  const later = [ask(), ask(), ask()];
  begun[0]?.resolve(1);
  expect(await Promise.all(together)).toEqual([1, 1]);
  await new Promise(setImmediate);
  expect(begun).toHaveLength(2);
  begun[1]?.resolve(2);
  expect(await Promise.all(later)).toEqual([2, 2, 2]);
});

test('a call that fails fails for those who asked for it, and the next one is made', async () => {
  let calls = 0;
  const ask = shareCalls(async () => {
    calls += 1;
    if (calls === 1) throw new Error('away');
    return calls;
  });
  const failed = await Promise.allSettled([ask(), ask()]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await ask()).toBe(2);
});

test('calls with arguments are shared by key, and nothing is kept of them', async () => {
  const calls: string[] = [];
  const ask = shareCallsByKey(
    (name: string) => name,
    async (name) => {
      calls.push(name);
      return calls.length;
    },
  );
  expect(await Promise.all([ask('a'), ask('b'), ask('a'), ask('b'), ask('b')])).toEqual([1, 2, 1, 2, 2]);
  expect(calls).toEqual(['a', 'b']);
  expect(await ask('a')).toBe(3);
});
