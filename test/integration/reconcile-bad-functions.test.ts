import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { OwnershipConflict } from '#core/reconcile/context.ts';
import { type Context, gate, prepareReconciling, probeKind, type Reconciling } from '#test/support/reconciling.ts';

let world: Reconciling;
// oxlint-disable-next-line typescript/no-explicit-any -- a function in JavaScript may return anything
let reconcile: (ctx: Context) => any;
const TIMEOUT_MS = 150;
const good = { name: 'good', summary: 'GoodReady', statusFields: ['mine'] };
const kinds = [
  probeKind('Probe', { name: 'probe', timeoutMs: TIMEOUT_MS, reconcile: (ctx) => reconcile(ctx) }),
  probeKind('Two', { name: 'bad', statusFields: ['note'], reconcile: (ctx) => reconcile(ctx) }, good),
];

beforeAll(async () => {
  world = await prepareReconciling(kinds);
});
beforeEach(() => {
  reconcile = () => undefined;
  vi.spyOn(Math, 'random').mockReturnValue(0.9);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.clear();
});
afterAll(() => world.close());

/** Resolves when a lease that was not renewed would be over. */
async function outlivesItsLease(): Promise<void> {
  const [lease] = await world.sql`select expires_at from plumbline.pass_lease where expires_at > clock_timestamp()`;
  await vi.waitFor(async () => {
    const [now] = await world.sql`select clock_timestamp() > ${lease?.['expires_at']} as "isOver"`;
    expect(now?.['isOver']).toBe(true);
  }, 5_000);
}

async function messageOf(name: string): Promise<string> {
  const { conditions } = await world.status('Probe', name);
  return conditions.find((each: { type: string }) => each.type === 'Ready').message;
}

describe('a reconcile function', () => {
  test.each<[string, () => unknown, string]>([
    [
      'throws',
      () => {
        throw new Error('oh no');
      },
      'oh no',
    ],
    ['rejects', () => Promise.reject(new Error('oh no')), 'oh no'],
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors
    ['rejects with no error', () => Promise.reject(undefined), 'undefined'],
    ['rejects with an error without words', () => Promise.reject(new Error('')), 'an error without a message'],
    ['returns a number', () => 42, 'reconcile() must return nothing'],
    ['returns unknown fields', () => ({ requeueAfter: 5 }), 'reconcile() must return nothing'],
    ['asks for a pass in the past', () => ({ requeueAfterMs: -1 }), 'requeueAfterMs'],
    ['asks for a pass never', () => ({ requeueAfterMs: Number.NaN }), 'requeueAfterMs'],
    ['gives a reason of several words', () => ({ notReady: { reason: 'not yet', message: '' } }), 'notReady.reason'],
  ])('that %s fails alone, is told in the status, and tried again', async (_what, returned, words) => {
    await world.create('Probe', 'bad');
    await world.create('Two', 'fine');
    reconcile = (ctx) => (ctx.object.kind === 'Probe' ? returned() : undefined);
    const driver = world.driver();
    await driver.run();
    expect(await world.conditions('Probe', 'bad')).toEqual({ Ready: 'False ReconcileFailed' });
    expect(await messageOf('bad')).toContain(words);
    expect(await world.item('bad')).toMatchObject({ attempts: 1, class: 2 });
    expect(await world.conditions('Two', 'fine')).toMatchObject({ Ready: 'True Reconciled' });
    expect(driver.errors).toEqual([]);
  });

  test('that hangs is told to end when its time is up, and its pass has failed', async () => {
    await world.create('Probe', 'hanging');
    let reason: unknown;
    reconcile = ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject((reason = signal.reason) as Error));
      });
    await world.driver().run();
    expect(await world.conditions('Probe', 'hanging')).toEqual({ Ready: 'False PassTimedOut' });
    expect(reason).toMatchObject({ name: 'PassTimedOut', message: `the pass took longer than ${TIMEOUT_MS} ms` });
  });

  test('that ignores its signal keeps its object to itself until it ends, and holds nobody else up', async () => {
    const end = gate();
    await world.create('Probe', 'deaf');
    reconcile = (ctx) => (ctx.object.metadata.name === 'deaf' ? end.opened : undefined);
    const driver = world.driver({ concurrency: 1, leaseMs: 1_000 });
    const staying = driver.stay();
    await vi.waitFor(
      async () => expect(await world.conditions('Probe', 'deaf')).toEqual({ Ready: 'False PassTimedOut' }),
      10_000,
    );
    expect(JSON.stringify((await world.get('Probe', 'deaf'))?.status)).toContain('its function goes on');
    await world.create('Probe', 'other');
    await vi.waitFor(
      async () => expect(await world.conditions('Probe', 'other')).toEqual({ Ready: 'True Reconciled' }),
      5_000,
    );
    await world.update('Probe', 'deaf', { value: 2 });
    await outlivesItsLease();
    expect(await world.driver().run()).toBe(0);
    end.open();
    await vi.waitFor(
      async () => expect(await world.conditions('Probe', 'deaf')).toEqual({ Ready: 'True Reconciled' }),
      10_000,
    );
    await staying.stop();
  });

  test('that acts after its time was up is stopped at the act', async () => {
    await world.create('Probe', 'late');
    let acted = false;
    reconcile = async (ctx) => {
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      await ctx.act('too late', async () => (acted = true));
    };
    await world.driver().run();
    expect(acted).toBe(false);
    expect(await world.conditions('Probe', 'late')).toEqual({ Ready: 'False PassTimedOut' });
  });

  test.each<[string, (ctx: Context) => void, string]>([
    [
      'the condition of another',
      (ctx) => ctx.condition('GoodReady', 'True', 'Lie'),
      'does not own the condition GoodReady',
    ],
    ["the driver's condition", (ctx) => ctx.condition('DeletionBlocked', 'True', 'Lie'), 'does not own the condition'],
    ['the field of another', (ctx) => ctx.report('mine', 1), 'does not own the status field mine'],
  ])('that writes %s fails, and that is left as it is', async (_what, write, words) => {
    await world.create('Two', 'shared');
    reconcile = write;
    await world.driver().run();
    const { conditions, mine } = await world.status('Two', 'shared');
    expect(conditions.find((each: { type: string }) => each.type === 'Ready').message).toContain(words);
    expect(await world.conditions('Two', 'shared')).toEqual({
      Ready: 'False ReconcileFailed',
      GoodReady: 'True Reconciled',
    });
    expect(mine).toBeUndefined();
  });

  test('whose report the store refuses, since another version of its declaration is registered, fails alone', async () => {
    await world.create('Two', 'older');
    await world.sql`update plumbline.controller set status_fields = '{}' where name = 'example.dev/bad'`;
    reconcile = (ctx) => ctx.report('note', 'hello');
    await world.driver().run();
    const { conditions, note } = await world.status('Two', 'older');
    expect(conditions.find((each: { type: string }) => each.type === 'Ready').message).toContain('field note');
    expect(note).toBeUndefined();
    await world.sql`update plumbline.controller set status_fields = '{note}' where name = 'example.dev/bad'`;
  });

  test('that finds something of a stranger says so in a condition of its own, which goes with the conflict', async () => {
    await world.create('Probe', 'taken');
    reconcile = () => Promise.reject(new OwnershipConflict('it is not ours'));
    await world.driver().run();
    expect(await world.conditions('Probe', 'taken')).toEqual({
      Ready: 'False OwnershipConflict',
      OwnershipConflict: 'True OwnershipConflict',
    });
    reconcile = () => undefined;
    await world.makeAllDue();
    await world.driver().run();
    expect(await world.conditions('Probe', 'taken')).toEqual({ Ready: 'True Reconciled' });
  });

  test('that cannot see, and says nothing of it, has not succeeded', async () => {
    await world.create('Probe', 'blind');
    reconcile = async (ctx) => void (await ctx.observe('thing', 'x', () => Promise.reject(new Error('fog'))));
    await world.driver().run();
    expect(await world.conditions('Probe', 'blind')).toEqual({ Ready: 'Unknown ObservationFailed' });
    expect((await world.status('Probe', 'blind')).resources).toMatchObject([
      { class: 'thing', id: 'x', state: 'unknown' },
    ]);
  });

  test('is not called with a spec that its schema refuses, such as one that is older; nothing is done before it is put right', async () => {
    let seen: unknown;
    reconcile = (ctx) => {
      seen = ctx.object.spec;
    };
    const spec = async (text: string): Promise<void> => {
      await world.sql`update plumbline.resource set spec = ${text}::text::jsonb where name = 'old'`;
      await world.driver().run();
    };
    await world.create('Probe', 'old');
    await spec('{"size": "large"}');
    expect(await world.conditions('Probe', 'old')).toEqual({ Ready: 'False InvalidSpec' });
    expect([seen, await messageOf('old')]).toEqual([undefined, expect.stringContaining('spec.size')]);
    await spec('{}');
    expect(await world.conditions('Probe', 'old')).toEqual({ Ready: 'True Reconciled' });
    // With what the schema fills in.
    expect(seen).toEqual({ size: 1 });
  });

  test('that reports what cannot be stored fails alone, also beside others that end at the same moment', async () => {
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    const bad: Record<string, (ctx: Context) => unknown> = {
      circular: (ctx) => ctx.report('note', circular as never),
      functions: (ctx) => ctx.report('note', (() => 1) as unknown as string),
      huge: (ctx) => ctx.report('note', 'x'.repeat(1024 * 1024)),
      sometimes: (ctx) => ctx.condition('Ready', 'Maybe' as 'True', 'Because', ''),
      wordy: (ctx) => ctx.condition('Ready', 'True', 'it is so', ''),
    };
    reconcile = (ctx) => bad[ctx.object.metadata.name]?.(ctx);
    const names = [...Object.keys(bad), 'good-1', 'good-2', 'good-3'];
    for (const name of names) await world.create('Two', name);
    await world.driver({ concurrency: names.length }).run();
    for (const name of names) {
      const isGood = name.startsWith('good');
      expect([name, await world.conditions('Two', name)]).toEqual([
        name,
        { Ready: isGood ? 'True Reconciled' : 'False ReconcileFailed', GoodReady: 'True Reconciled' },
      ]);
    }
  });

  test('whose words hold characters that the database cannot is told all the same', async () => {
    await world.create('Probe', 'words');
    reconcile = (ctx) => {
      ctx.event('Warning', 'Odd', 'a\0b\ud800c');
      throw new Error('no\0thing');
    };
    await world.driver().run();
    expect(await messageOf('words')).toBe('no\u{FFFD}thing');
  });

  test('that says it is ready of what it could not see, or did not wait for, is not', async () => {
    await world.create('Probe', 'forged');
    reconcile = async (ctx) => {
      await ctx.observe('thing', 'x', () => Promise.reject(new Error('fog')));
      ctx.condition('Ready', 'True', 'Forged', '');
    };
    await world.driver().run();
    expect(await world.conditions('Probe', 'forged')).toEqual({ Ready: 'Unknown ObservationFailed' });
    reconcile = (ctx) => void ctx.observe('thing', 'x', () => new Promise(() => undefined));
    await world.makeAllDue();
    await world.driver().run();
    expect(await messageOf('forged')).toContain('await it');
  });
});
