import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InstanceLock, lockInstance } from '#infra/_shared/data-dir/instance-lock.ts';
import { type Child, startChild } from '#test/support/child.ts';

const STARTERS = 8;

let directory: string;
let children: Child[];
let locks: InstanceLock[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'plumbline-lock-'));
  children = [];
  locks = [];
});

afterEach(async () => {
  for (const lock of locks) lock.release();
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(children.map((child) => child.exit));
  await rm(directory, { recursive: true });
});

async function starter(): Promise<Child> {
  const child = startChild('test/support/lock-holder.ts', [directory]);
  children.push(child);
  expect(await child.nextLine()).toBe('ready');
  return child;
}

async function take(): Promise<InstanceLock> {
  const lock = await lockInstance(directory);
  locks.push(lock);
  return lock;
}

async function killHolder(holder: Child): Promise<void> {
  holder.kill('SIGKILL');
  await holder.exit;
}

describe('lockInstance()', () => {
  test("refuses a second start with the first one's pid and what to do", async () => {
    await take();
    const second = await starter();
    second.send('go');
    expect(await second.nextLine()).toBe(
      `StartError: ${directory} is in use by process ${process.pid}; stop that one, or give this one another DATA_DIR`,
    );
  });

  test('refuses a second start in the same process too', async () => {
    await take();
    await expect(take()).rejects.toThrow(`in use by process ${process.pid}`);
  });

  test('lets the next one in after a release, however often that is called', async () => {
    const first = await take();
    first.release();
    const second = await starter();
    second.send('go');
    expect(await second.nextLine()).toBe('held');
    first.release();
    await expect(take()).rejects.toThrow(`in use by process ${second.pid}`);
  });

  test('is not blocked by what kill -9 left behind', async () => {
    const holder = await starter();
    holder.send('go');
    expect(await holder.nextLine()).toBe('held');
    await killHolder(holder);
    await expect(take()).resolves.toBeDefined();
  });

  test('is not blocked when another process has the pid of a killed holder by now', async () => {
    const bystander = await starter();
    await writeFile(join(directory, 'instance.pid'), `${bystander.pid}\n`);
    await expect(take()).resolves.toBeDefined();
  });

  test('lets exactly one of many simultaneous starts win, each time that the winner is killed', async () => {
    let starters = await Promise.all(Array.from({ length: STARTERS }, starter));
    while (starters.length > 1) {
      for (const each of starters) each.send('go');
      const answers = await Promise.all(starters.map((each) => each.nextLine()));
      const winners = starters.filter((_, index) => answers[index] === 'held');
      expect(winners).toHaveLength(1);
      const [winner] = winners;
      if (!winner) return;
      starters = starters.filter((each) => each !== winner);
      expect(answers.filter((answer) => answer?.includes(`in use by process ${winner.pid};`))).toHaveLength(
        starters.length,
      );
      await killHolder(winner);
    }
  });

  test('says which folder cannot be locked, and why', async () => {
    const absent = join(directory, 'absent');
    await expect(lockInstance(absent)).rejects.toThrow(
      new RegExp(
        `^${absent}/instance.lock cannot be locked: unable to open database file; the folder must be writable`,
      ),
    );
  });
});
