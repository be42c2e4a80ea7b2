import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ObservationFailed } from '#core/reconcile/observation.ts';
import { TerminalError, type ReconcileResult } from '#core/reconcile/outcome.ts';
import { type Context, gate, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

let world: Reconciling;
let reconcile: (ctx: Context) => Promise<ReconcileResult | void>;
const seen: number[] = [];
const kind = probeKind('Probe', {
  name: 'probe',
  statusFields: ['note'],
  reconcile: async (ctx) => {
    seen.push(ctx.object.spec['value']);
    return reconcile(ctx);
  },
});

beforeAll(async () => {
  world = await prepareReconciling([kind]);
});
beforeEach(() => {
  seen.length = 0;
  reconcile = async () => undefined;
});
afterEach(() => world.clear());
afterAll(() => world.close());

async function failing(): Promise<void> {
  throw new Error('the far side is away');
}

describe('an object', () => {
  test('that changes 50 times during a slow pass gets exactly one more, over two processes, never two at once', async () => {
    const [entered, release] = [gate(), gate()];
    let running = 0;
    let most = 0;
    reconcile = async () => {
      most = Math.max(most, (running += 1));
      entered.open();
      await release.opened;
      running -= 1;
    };
    await world.create('Probe', 'slow', { value: 0 });
    const [one, other] = [world.driver(), world.driver()];
    const first = one.run();
    await entered.opened;
    for (let value = 1; value <= 50; value++) await world.update('Probe', 'slow', { value });
    expect(await other.run()).toBe(0);
    release.open();
    await Promise.all([first, other.run()]);
    await other.run();
    expect(seen).toEqual([0, 50]);
    expect(most).toBe(1);
  });

  test('is reconciled to its last spec, whatever it was between', async () => {
    await world.create('Probe', 'level', { value: 2 });
    await world.update('Probe', 'level', { value: 5 });
    await world.update('Probe', 'level', { value: 3 });
    await world.driver().run();
    expect(seen).toEqual([3]);
  });

  test("that is gone before its pass is nobody's work any more", async () => {
    await world.create('Probe', 'gone', { value: 1 });
    await world.delete('Probe', 'gone');
    const driver = world.driver();
    expect(await driver.run()).toBe(0);
    expect(await world.sql`select from plumbline.work_item`).toEqual([]);
  });

  test('that goes in the middle of its pass ends it in peace, and leaves nothing', async () => {
    reconcile = async () => void (await world.delete('Probe', 'going'));
    await world.create('Probe', 'going', { value: 1 });
    const driver = world.driver();
    await driver.run();
    expect(driver.errors).toEqual([]);
    expect(await world.sql`select from plumbline.work_item`).toEqual([]);
    expect(await world.sql`select from plumbline.pass_lease`).toEqual([]);
  });
});

describe('a pass that fails', () => {
  // Of the jitter: a retry that is due at once would be part of the same run.
  beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0.9));
  afterEach(() => void vi.restoreAllMocks());

  test('is tried again ever later, which the row remembers for any process, until one succeeds', async () => {
    await world.create('Probe', 'failing', { value: 1 });
    reconcile = failing;
    for (const attempts of [1, 2, 3]) {
      await world.driver().run();
      const item = await world.item('failing');
      expect(item).toMatchObject({ attempts, class: 2, lastError: 'ReconcileFailed: the far side is away' });
      expect(item?.dueInMs).toBeGreaterThan(800 * 2 ** (attempts - 1) - 700);
      expect(item?.dueInMs).toBeLessThanOrEqual(900 * 2 ** (attempts - 1));
      await world.makeAllDue();
    }
    reconcile = async () => ({ requeueAfterMs: 60_000 });
    await world.driver().run();
    expect(await world.item('failing')).toMatchObject({ attempts: 0, lastError: null });
  });

  test('has fresh patience with a new generation', async () => {
    await world.create('Probe', 'failing', { value: 1 });
    reconcile = failing;
    for (let pass = 0; pass < 5; pass++) {
      await world.makeAllDue();
      await world.driver().run();
    }
    expect((await world.item('failing'))?.attempts).toBe(5);
    await world.update('Probe', 'failing', { value: 2 });
    expect(await world.item('failing')).toMatchObject({ attempts: 0, class: 1 });
    await world.driver().run();
    expect((await world.item('failing'))?.attempts).toBe(1);
  });

  test('tells of the generation that it saw, and is not ready', async () => {
    await world.create('Probe', 'failing', { value: 1 });
    await world.driver().run();
    expect(await world.conditions('Probe', 'failing')).toEqual({ Ready: 'True Reconciled' });
    await world.update('Probe', 'failing', { value: 2 });
    reconcile = failing;
    await world.driver().run();
    expect(await world.status('Probe', 'failing')).toMatchObject({
      observedGeneration: 2,
      conditions: [{ type: 'Ready', status: 'False', observedGeneration: 2, message: 'the far side is away' }],
    });
  });

  test('because it could not see leaves it unknown whether the object is ready', async () => {
    await world.create('Probe', 'blind');
    reconcile = async () => {
      throw new ObservationFailed('the far side is hidden');
    };
    await world.driver().run();
    expect(await world.conditions('Probe', 'blind')).toEqual({ Ready: 'Unknown ObservationFailed' });
  });

  test('is not ready, whatever it had said before it failed', async () => {
    await world.create('Probe', 'both');
    reconcile = async (ctx) => {
      ctx.condition('Ready', 'True', 'Fine');
      throw new Error('no');
    };
    await world.driver().run();
    expect(await world.conditions('Probe', 'both')).toEqual({ Ready: 'False ReconcileFailed' });
    expect((await world.item('both'))?.attempts).toBe(1);
  });

  test('with a TerminalError waits, and is looked at again only by resync', async () => {
    await world.create('Probe', 'never', { value: 1 });
    reconcile = async () => {
      throw new TerminalError('SizeTaken', 'no such size');
    };
    await world.driver().run();
    expect(await world.conditions('Probe', 'never')).toEqual({ Ready: 'False SizeTaken' });
    expect(await world.item('never')).toMatchObject({ isTerminal: true, class: 3 });
    await world.sql`update plumbline.resource set labels = '{"a":"b"}' where name = 'never'`;
    expect(await world.driver().run()).toBe(0);
    await world.makeAllDue();
    expect(await world.driver().run()).toBe(1);
  });

  test.each([
    ['a new generation', () => world.update('Probe', 'never', { value: 2 })],
    ['the reconcile-now token', () => world.annotate('Probe', 'never', { 'plumbline.dev/reconcile-now': 'again' })],
  ])('with a TerminalError is tried again with %s', async (_what, write) => {
    await world.create('Probe', 'never', { value: 1 });
    reconcile = async () => {
      throw new TerminalError('SizeTaken', 'no such size');
    };
    await world.driver().run();
    reconcile = async () => undefined;
    await write();
    expect(await world.driver().run()).toBe(1);
    expect(await world.conditions('Probe', 'never')).toEqual({ Ready: 'True Reconciled' });
  });
});

describe('a pass that ends well', () => {
  test('and says what is said already writes nothing: no version, no event', async () => {
    reconcile = async (ctx) => ctx.report('note', 'same');
    await world.create('Probe', 'quiet');
    await world.driver().run();
    const [before, records] = [await world.versions(), await outbox()];
    await world.makeAllDue();
    expect(await world.driver().run()).toBe(1);
    expect(await world.versions()).toBe(before);
    expect(await outbox()).toBe(records);
  });

  test('and changes the status does not cause another of itself', async () => {
    reconcile = async (ctx) => ctx.report('note', Math.random());
    await world.create('Probe', 'talkative');
    expect(await world.driver().run()).toBe(1);
    expect(await world.driver().run()).toBe(0);
  });

  test('and asks for another later is overtaken by a change', async () => {
    reconcile = async () => ({ requeueAfterMs: 3_600_000 });
    await world.create('Probe', 'timer', { value: 1 });
    await world.driver().run();
    expect((await world.item('timer'))?.dueInMs).toBeGreaterThan(60_000);
    await world.update('Probe', 'timer', { value: 2 });
    await world.driver().run();
    expect(seen).toEqual([1, 2]);
  });

  test('is repeated at its resync at the latest, give or take a fifth', async () => {
    await world.create('Probe', 'resync');
    await world.driver().run();
    const { dueInMs = 0, class: itemClass } = (await world.item('resync')) ?? {};
    expect(itemClass).toBe(3);
    expect(dueInMs).toBeGreaterThan(600_000 * 0.79);
    expect(dueInMs).toBeLessThan(600_000 * 1.21);
  });

  test('tells which reconcile-now token it has served', async () => {
    await world.create('Probe', 'asked');
    await world.driver().run();
    await world.annotate('Probe', 'asked', { 'plumbline.dev/reconcile-now': 'monday' });
    expect(await world.driver().run()).toBe(1);
    expect(await world.status('Probe', 'asked')).toMatchObject({ lastReconcileNow: 'monday' });
    expect(await world.driver().run()).toBe(0);
  });

  test('is Ready only when it says nothing of what has to happen first', async () => {
    reconcile = async () => ({ notReady: { reason: 'Waiting', message: 'for the moon' } });
    await world.create('Probe', 'waiting');
    await world.driver().run();
    expect(await world.conditions('Probe', 'waiting')).toEqual({ Ready: 'False Waiting' });
  });
});

async function outbox(): Promise<number> {
  const [row] = await world.sql<{ count: number }[]>`select count(*)::int4 as count from plumbline.outbox`;
  return row?.count ?? 0;
}
