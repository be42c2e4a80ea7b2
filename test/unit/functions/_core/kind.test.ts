import * as v from 'valibot';
import { describe, expect, test } from 'vitest';

import { createKindRegistry } from '#core/kind-registry.ts';
import { defineKind, type Kind, type KindDefinition } from '#core/kind.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';

const WIDGET: KindDefinition<object, object> = {
  group: 'example.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: v.object({}),
};

describe('defineKind', () => {
  test('gives a frozen kind with its defaults', () => {
    const kind = defineKind({ ...WIDGET, redact: ['spec.users.*.token'] });
    expect(kind).toMatchObject({ singular: 'widget', redact: ['spec.users.*.token'], finalizers: [] });
    expect(() => Object.assign(kind, { plural: 'gadgets' })).toThrow(TypeError);
    expect(() => (kind.redact as string[]).push('spec')).toThrow(TypeError);
  });

  test.for<[Record<string, unknown>, string]>([
    [{ group: 'example' }, 'group must be a domain'],
    [{ group: 'Example.dev' }, 'group "Example.dev" must be a DNS subdomain'],
    [{ version: '1' }, 'version "1" must look like "v1"'],
    [{ version: 'v1gamma1' }, 'version "v1gamma1"'],
    [{ kind: 'widget' }, 'PascalCase'],
    [{ kind: undefined }, 'kind'],
    [{ plural: 'Widgets' }, 'plural "Widgets"'],
    [{ plural: 'namespaces' }, 'reserved'],
    [{ plural: 'status' }, 'reserved'],
    [{ scope: 'Tenant' }, 'scope must be "Namespaced" or "Cluster"'],
    [{ spec: { type: 'object' } }, 'spec must be a valibot schema'],
    [{ spec: v.objectAsync({}) }, 'spec must be a synchronous schema'],
    [{ status: 'any' }, 'status must be a valibot schema'],
    [{ redact: ['password'] }, 'redact "password" must be a path below spec or status'],
    [{ redact: ['spec'] }, 'redact "spec"'],
    [{ redact: ['spec..a'] }, 'redact "spec..a"'],
    [{ immutable: ['server'] }, 'immutable "server" must be a path below spec'],
    [{ immutable: ['spec.users.*.name'] }, 'immutable "spec.users.*.name"'],
    [{ immutable: ['status.a'] }, 'immutable "status.a"'],
    [{ immutable: ['spec.key'], redact: ['spec.key'] }, 'immutable "spec.key" and redact "spec.key" meet'],
    [{ immutable: ['spec.a'], redact: ['spec.a.b.*.key'] }, 'immutable "spec.a" and redact "spec.a.b.*.key" meet'],
    [{ immutable: ['spec.a.b'], redact: ['spec.a'] }, 'immutable "spec.a.b" and redact "spec.a" meet'],
    [{ immutable: ['spec.a.b'], redact: ['spec.*.b'] }, 'immutable "spec.a.b" and redact "spec.*.b" meet'],
    [{ finalizers: ['cleanup'] }, 'finalizers "cleanup" must have a domain'],
    [{ finalizers: ['example.dev/a', 'example.dev/a'] }, 'the same name twice'],
    [{ controllersElsewhere: [{ name: 'Dns' }] }, 'controller elsewhere "Dns" must have'],
    [{ controllersElsewhere: [{ name: 'dns', conditions: ['not ready'] }] }, 'must be in PascalCase'],
    [{ controllersElsewhere: [{ name: 'dns', statusFields: ['observedGeneration'] }] }, "which is the driver's"],
    [
      {
        controllers: [{ name: 'smith', reconcile: () => undefined }],
        controllersElsewhere: [{ name: 'dns', conditions: ['Ready'] }],
      },
      'controllers "smith" and "dns" both have the condition Ready',
    ],
  ])('refuses %j', ([change, words]) => {
    const definition = { ...WIDGET, ...change } as KindDefinition<object, object>;
    expect(() => defineKind(definition)).toThrow(TypeError);
    expect(() => defineKind(definition)).toThrow(words);
  });

  test('names everything that is wrong at once', () => {
    const definition = { ...WIDGET, version: 'one', plural: 'W', scope: 'x' } as unknown as KindDefinition<
      object,
      object
    >;
    expect(() => defineKind(definition)).toThrow(/kind example\.dev\/Widget: version .*; plural .*; scope/);
  });
});

describe('a registry of kinds', () => {
  const widget = defineKind(WIDGET);

  test('finds a kind by its path and by its name', () => {
    const kinds = createKindRegistry([...SHIPPED_KINDS, widget]);
    expect(kinds.atPath('example.dev', 'v1', 'widgets')).toBe(widget);
    expect(kinds.atPath('example.dev', 'v2', 'widgets')).toBeUndefined();
    expect(kinds.atPath('plumbline.dev', 'v1', 'widgets')).toBeUndefined();
    expect(kinds.all).toHaveLength(4);
  });

  test.for<[string, readonly Kind[], string]>([
    [
      'twice the same kind',
      [widget, defineKind({ ...WIDGET, version: 'v2', plural: 'gadgets' })],
      'defined twice (v1 and v2)',
    ],
    ['twice the same plural', [widget, defineKind({ ...WIDGET, kind: 'Gadget' })], 'the same plural "widgets"'],
  ])('refuses %s', ([, kinds, words]) => {
    expect(() => createKindRegistry(kinds)).toThrow(words);
  });
});
