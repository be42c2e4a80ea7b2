import { describe, expect, test } from 'vitest';
import * as v from 'valibot';
import { defineKind, type Kind } from '#core/kind.ts';
import type { ControllerDefinition } from '#core/reconcile/controller.ts';

type Definition = Partial<ControllerDefinition<object, object>>;

const reconcile = async (): Promise<void> => undefined;
const finalize = async (): Promise<{ finalized: true }> => ({ finalized: true });

function kindWith(...controllers: readonly Definition[]): Kind {
  return defineKind({
    group: 'example.dev',
    version: 'v1',
    kind: 'Widget',
    plural: 'widgets',
    scope: 'Namespaced',
    spec: v.object({}),
    finalizers: ['example.dev/elsewhere'],
    controllers: controllers.map((each) => ({ name: 'smith', reconcile, ...each })),
  });
}

describe('a controller', () => {
  test('has its defaults, and its place in the group', () => {
    expect(kindWith({}).controllers[0]).toMatchObject({
      id: 'example.dev/smith',
      finalizer: undefined,
      summary: 'Ready',
      conditions: [],
      statusFields: [],
      timeoutMs: 60_000,
      resyncMs: 600_000,
      watches: [],
    });
  });

  test('with finalize() has a finalizer, which every new object of its kind gets', () => {
    expect(kindWith({ finalize }).finalizers).toEqual(['example.dev/elsewhere', 'example.dev/smith']);
    expect(kindWith({}).finalizers).toEqual(['example.dev/elsewhere']);
  });

  test.each<[Definition, string]>([
    [{ name: 'Smith' }, 'controller "Smith"'],
    [{ summary: 'not ready' }, 'PascalCase'],
    [{ conditions: ['DeletionBlocked'] }, "the condition DeletionBlocked, which is the driver's"],
    [{ conditions: ['Paused'] }, "which is the driver's"],
    [{ statusFields: ['conditions'] }, "the status field conditions, which is the driver's"],
    [{ statusFields: ['observedGeneration'] }, "which is the driver's"],
    [{ timeoutMs: 0 }, 'timeoutMs 0, which must be 100 at least'],
    [{ resyncMs: Number.NaN }, 'resyncMs NaN'],
    [{ reconcile: 'later' as unknown as typeof reconcile }, 'has no function "reconcile"'],
  ])('is refused with %j', (definition, words) => {
    expect(() => kindWith(definition)).toThrow(words);
  });
});

test.each<[Definition, Definition, string]>([
  [{ name: 'a' }, { name: 'a', summary: 'Other' }, 'the name a'],
  [{ name: 'a' }, { name: 'b' }, 'the condition Ready'],
  [{ name: 'a', conditions: ['Warm'] }, { name: 'b', summary: 'Warm' }, 'the condition Warm'],
  [
    { name: 'a', statusFields: ['size'] },
    { name: 'b', summary: 'Other', statusFields: ['size'] },
    'the status field size',
  ],
])('two controllers %j and %j would undo what the other writes', (one, other, words) => {
  expect(() => kindWith(one, other)).toThrow(`both have ${words}`);
});
