import { expect, test } from 'vitest';
import { onceMore } from '#infra/cloudflare/once-more.ts';

test('a thousand that ask at once are answered by two runs, which do not meet', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  let runs = 0;
  let running = 0;
  let most = 0;
  const ask = onceMore(async () => {
    runs += 1;
    most = Math.max(most, ++running);
    await gate;
    running -= 1;
  });
  const asked = Array.from({ length: 1_000 }, () => ask());
  open();
  await Promise.all(asked);
  expect([runs, most]).toEqual([2, 1]);
  await ask();
  expect(runs).toBe(3);
});

test('a run that fails fails for who waited for it, and the next one runs', async () => {
  let runs = 0;
  const ask = onceMore(async () => {
    runs += 1;
    if (runs === 1) throw new Error('the first');
  });
  const [first, second, third] = await Promise.allSettled([ask(), ask(), ask()]);
  expect([first?.status, second?.status, third?.status, runs]).toEqual(['rejected', 'fulfilled', 'fulfilled', 2]);
  await ask();
  expect(runs).toBe(3);
});
