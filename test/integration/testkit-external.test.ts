import { expect, test } from 'vitest';
import { createCalls } from '#infra/testkit/calls.ts';
import { wrapPort } from '#infra/testkit/external.ts';
import type { Fault } from '#infra/testkit/faults.ts';
import { type KitProcess, startProcess } from '#infra/testkit/kit-process.ts';
import { PassSignal } from '#functions/reconcile/pass-signal.ts';

class Store {
  readonly #items = new Map<string, number>();
  readonly folders = { deep: { count: async (): Promise<number> => this.#items.size } };
  get(name: string): Promise<number | undefined> {
    return Promise.resolve(this.#items.get(name));
  }
  async put(name: string, value: number): Promise<void> {
    this.#items.set(name, value);
  }
  async *each(): AsyncGenerator<string> {
    yield* this.#items.keys();
  }
  open(): { has(name: string): Promise<boolean>; readonly title: string } {
    return Object.freeze({ has: async (name: string) => this.#items.has(name), title: 'open' });
  }
  names(): readonly string[] {
    return [...this.#items.keys()];
  }
}

function setUp(): { store: Store; real: Store; calls: ReturnType<typeof createCalls>; worker: KitProcess } {
  const calls = createCalls({});
  const real = new Store();
  const worker = startProcess();
  worker.current = new PassSignal(60_000);
  return { store: wrapPort(real, 'store', calls), real, calls, worker };
}

async function listed(store: Store): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const name of store.each()) names.push(name);
  } catch (error) {
    names.push(String(error));
  }
  return names;
}

test('methods of classes, of what lies in them and of what they give are calls, each with its path', async () => {
  const { store, calls, worker } = setUp();
  await worker.run(async () => {
    await store.put('a', 1);
    expect(await store.get('a')).toBe(1);
    expect(await store.folders.deep.count()).toBe(1);
    const opened = store.open();
    expect(opened.title).toBe('open');
    expect(await opened.has('a')).toBe(true);
    expect(await listed(store)).toEqual(['a']);
    expect(store.names()).toEqual(['a']);
  });
  const names = ['put', 'get', 'folders.deep.count', 'open.has', 'each'].map((name) => `store.${name}`);
  expect(calls.made).toEqual(names);
  expect(store).toBeInstanceOf(Store);
});

test('calls of the test itself are not counted, and never fail', async () => {
  const { store, calls } = setUp();
  calls.start({ at: 1, fault: 'error', name: 'store.put' });
  await store.put('a', 1);
  expect(calls.made).toEqual([]);
});

test.each<[Fault, boolean, RegExp]>([
  ['error', false, /store\.put failed/],
  ['denied', false, /store\.put is denied/],
  ['lost-answer', true, /store\.put failed/],
  ['time-out', false, /time of the pass run out/],
  ['late-success', false, /time of the pass run out/],
])('a call with the fault %s fails; whether it had an effect: %s', async (fault, hadEffect, words) => {
  const { store, real, calls, worker } = setUp();
  calls.start({ at: 1, fault, name: 'store.put' });
  await worker.run(() => expect(store.put('a', 1)).rejects.toThrow(words));
  expect(real.names()).toEqual(hadEffect ? ['a'] : []);
  await calls.arriveLate();
  expect(real.names()).toEqual(hadEffect || fault === 'late-success' ? ['a'] : []);
});

test('a list that breaks off gives its first half, then an error', async () => {
  const { store, calls, worker } = setUp();
  for (const name of ['a', 'b', 'c', 'd']) await store.put(name, 1);
  calls.start({ at: 1, fault: 'partial-list', name: 'store.each' });
  expect(await worker.run(() => listed(store))).toEqual(['a', 'b', expect.stringContaining('store.each failed')]);
});

test.each<['before' | 'after', readonly string[]]>([
  ['before', []],
  ['after', ['a']],
])('a process that dies %s a call hears nothing of it, and does nothing any more', async (crash, names) => {
  const { store, real, calls, worker } = setUp();
  calls.start({ at: 1, crash });
  let goesOn = false;
  void worker.run(async () => {
    await store.put('a', 1);
    goesOn = true;
  });
  await worker.died;
  // What it would do in parallel.
  void worker.run(() => store.put('b', 1));
  await worker.arrived();
  await new Promise((resolve) => setImmediate(resolve));
  expect(goesOn).toBe(false);
  expect(real.names()).toEqual(names);
  expect(worker.current?.signal.aborted).toBe(true);
});
