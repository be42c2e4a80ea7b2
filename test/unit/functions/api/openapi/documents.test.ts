import { Validator } from '@seriousme/openapi-schema-validator';
import * as v from 'valibot';
import { expect, test } from 'vitest';

import { createKindRegistry } from '#core/kind-registry.ts';
import { defineKind, type DocumentSchema, type Kind, type KindDefinition } from '#core/kind.ts';
import { openApiDocuments } from '#functions/api/openapi/documents.ts';

function kindWith(spec: DocumentSchema<object>, more: Partial<KindDefinition<object, object>> = {}): Kind {
  return defineKind({
    group: 'example.dev',
    version: 'v1',
    kind: 'Thing',
    plural: 'things',
    scope: 'Namespaced',
    spec,
    ...more,
  });
}

async function textOf(...kinds: Kind[]): Promise<string> {
  const { byGroupVersion } = await openApiDocuments(createKindRegistry(kinds), '1.0.0');
  return byGroupVersion.get('example.dev/v1')?.text ?? '';
}

// oxlint-disable-next-line typescript/no-explicit-any -- documents are compared, not typed
async function schemasOf(...kinds: Kind[]): Promise<any> {
  const content = JSON.parse(await textOf(...kinds));
  expect((await new Validator().validate(structuredClone(content))).errors).toBeUndefined();
  return content.components.schemas;
}

interface Tree {
  readonly key?: string | undefined;
  readonly children?: readonly Tree[] | undefined;
}

const tree: v.GenericSchema<unknown, Tree> = v.object({
  key: v.optional(v.string()),
  children: v.optional(v.array(v.lazy(() => tree))),
});

test('a schema that refers to itself is a component, and its secrets are secret at every depth', async () => {
  const schemas = await schemasOf(kindWith(tree, { redact: ['spec.key', 'spec.children.*.key'] }));
  const { spec } = schemas['dev.example.v1.Thing'].properties;
  expect(spec.properties.key).toEqual({ type: 'string', writeOnly: true });
  const [, name] = /schemas\/(.+)$/.exec(spec.properties.children.items.$ref) ?? [];
  expect(schemas[name ?? ''].properties.key).toEqual({ type: 'string', writeOnly: true });
});

test('a secret is found in each alternative, in maps and in lists, and its default is not shown', async () => {
  const password = v.optional(v.string(), 'hunter2');
  const schemas = await schemasOf(
    kindWith(
      v.object({
        login: v.variant('type', [
          v.object({ type: v.literal('plain'), password }),
          v.object({ type: v.literal('other'), password }),
        ]),
        byName: v.record(v.string(), v.object({ password })),
      }),
      { redact: ['spec.login.password', 'spec.byName.*.password'] },
    ),
  );
  const text = JSON.stringify(schemas);
  expect(text.match(/"writeOnly":true/g)).toHaveLength(3);
  expect(text).not.toContain('hunter2');
});

test('a schema without a form as JSON leaves the documents of the others as they are', async () => {
  const broken = v.object({ big: v.optional(v.bigint(), 1n) }) as unknown as DocumentSchema<object>;
  const other = { ...kindWith(v.object({ size: v.number() })), kind: 'Other', plural: 'others' };
  const schemas = await schemasOf(kindWith(broken), other);
  expect(schemas['dev.example.v1.Thing'].properties.spec).toMatchObject({ type: 'object' });
  expect(schemas['dev.example.v1.Other'].properties.spec.properties).toEqual({ size: { type: 'number' } });
});

test('the hash of a document changes with its schemas, and with nothing else', async () => {
  const hashOf = async (kind: Kind): Promise<string | undefined> =>
    (await openApiDocuments(createKindRegistry([kind]), '1.0.0')).byGroupVersion.get('example.dev/v1')?.hash;
  const before = await hashOf(kindWith(v.object({ size: v.number() })));
  expect(before).toMatch(/^[0-9a-f]{64}$/);
  expect(await hashOf(kindWith(v.object({ size: v.number() })))).toBe(before);
  expect(await hashOf(kindWith(v.object({ size: v.string() })))).not.toBe(before);
});
