import { expect, test } from 'vitest';
import { createWakeUps, type WakeUps } from '#infra/cloudflare/wake-ups.ts';

type Work = 'publish' | 'reconcile';

/** One object's storage and time, and how often its alarm was set. */
function world() {
  let alarmAtMs: number | null = null;
  const clock = { nowMs: 1_000_000, sets: 0 };
  const storage = {
    getAlarm: async () => alarmAtMs,
    async setAlarm(atMs: number) {
      clock.sets += 1;
      alarmAtMs = atMs;
    },
  };
  return {
    clock,
    /** In how many milliseconds it comes; undefined: it does not. */
    alarmInMs: () => (alarmAtMs === null ? undefined : alarmAtMs - clock.nowMs),
    live: () => createWakeUps<Work>(storage, ['publish', 'reconcile'], () => clock.nowMs),
    async ring(wakeUps: WakeUps<Work>): Promise<boolean> {
      clock.nowMs = Math.max(clock.nowMs, alarmAtMs ?? Infinity);
      alarmAtMs = null;
      return wakeUps.rang();
    },
  };
}

async function runAll(wakeUps: WakeUps<Work>, nextMs?: number): Promise<void> {
  for (const work of ['publish', 'reconcile'] as const) {
    await wakeUps.begins(work);
    await wakeUps.ends(work, nextMs);
  }
}

test('an object that dies amid a run is woken, and the run begins again', async () => {
  const { live, ring, alarmInMs } = world();
  await live().begins('publish');
  expect(alarmInMs()).toBe(5_000);
  expect(await ring(live())).toBe(true);
});

test('an alarm behind runs that ended well finds nothing to do, and sets no other', async () => {
  const { live, ring, alarmInMs } = world();
  const wakeUps = live();
  await runAll(wakeUps);
  expect(await ring(wakeUps)).toBe(false);
  expect(alarmInMs()).toBeUndefined();
});

test('a run that goes on is not begun beside itself, and would be missed later too', async () => {
  const { live, ring, alarmInMs } = world();
  const wakeUps = live();
  await runAll(wakeUps);
  await wakeUps.begins('reconcile');
  for (let i = 0; i < 3; i++) {
    expect(await ring(wakeUps)).toBe(false);
    expect(alarmInMs()).toBe(5_000);
  }
  expect(await ring(live())).toBe(true);
});

test('what is due later is run then, though other runs set the alarm and end before', async () => {
  const { live, ring, alarmInMs, clock } = world();
  const wakeUps = live();
  await runAll(wakeUps);
  await wakeUps.ends('reconcile', 60_000);
  await wakeUps.begins('publish');
  await wakeUps.ends('publish', undefined);
  expect(await ring(wakeUps)).toBe(false);
  expect(alarmInMs()).toBe(55_000);
  expect(await ring(wakeUps)).toBe(true);
  expect(clock.nowMs).toBe(1_060_000);
});

test('what is due before the alarm is run in time', async () => {
  const { live, ring, alarmInMs } = world();
  const wakeUps = live();
  await runAll(wakeUps, 250);
  expect(alarmInMs()).toBe(250);
  expect(await ring(wakeUps)).toBe(true);
});

test('a thousand runs in a row set one alarm', async () => {
  const { live, clock } = world();
  const wakeUps = live();
  for (let i = 0; i < 1_000; i++) await runAll(wakeUps);
  expect(clock.sets).toBe(1);
});
