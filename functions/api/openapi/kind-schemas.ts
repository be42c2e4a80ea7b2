/** The components of one kind: the object, and the list of them. */

import { documentSchema, markPath } from '#functions/api/openapi/document-schema.ts';
import { META_SCHEMAS } from '#functions/api/openapi/meta-schemas.ts';
import {
  refTo,
  type Components,
  type GroupVersionKind,
  type SchemaObject,
} from '#functions/api/openapi/schema-object.ts';
import { IMMUTABLE } from '#core/immutable-fields.ts';
import type { Kind } from '#core/kind.ts';

/** The name of a kind's component, as Kubernetes makes them: `dev.example.v1.Widget`. */
export function componentOf({ group, version, kind }: Kind): string {
  return [...group.split('.').toReversed(), version, kind].join('.');
}

export function gvkOf({ group, version, kind }: Kind): GroupVersionKind {
  return { group, version, kind };
}

/** Adds them. Secret fields are `writeOnly`: the same schema serves requests and answers. */
export function addKindSchemas(kind: Kind, components: Components): void {
  const name = componentOf(kind);
  const documents = {
    spec: documentSchema(kind.spec, `${name}.spec`, components),
    status: documentSchema(kind.status, `${name}.status`, components),
  };
  mark(kind.redact, asSecret);
  mark(kind.immutable, asImmutable);
  components[name] = {
    type: 'object',
    ...(documents.spec.description !== undefined && { description: documents.spec.description }),
    properties: {
      apiVersion: { type: 'string', enum: [`${kind.group}/${kind.version}`] },
      kind: { type: 'string', enum: [kind.kind] },
      metadata: refTo(META_SCHEMAS.objectMeta),
      ...documents,
    },
    'x-kubernetes-group-version-kind': [gvkOf(kind)],
  };
  components[`${name}List`] = {
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: { type: 'string', enum: [`${kind.group}/${kind.version}`] },
      kind: { type: 'string', enum: [`${kind.kind}List`] },
      metadata: refTo(META_SCHEMAS.listMeta),
      items: { type: 'array', items: refTo(name) },
    },
    'x-kubernetes-group-version-kind': [{ ...gvkOf(kind), kind: `${kind.kind}List` }],
  };

  function mark(paths: readonly string[], how: (schema: SchemaObject) => void): void {
    for (const path of paths) {
      const [root, ...below] = path.split('.');
      if (root === 'spec' || root === 'status') markPath(documents[root], below, how, components);
    }
  }
}

/** What is said of a secret gives no value of it away. */
function asSecret(schema: SchemaObject): void {
  letMark(schema);
  delete schema.default;
  delete schema.example;
  delete schema.examples;
  schema.writeOnly = true;
}

/** In the words of Kubernetes. @see https://kubernetes.io/docs/reference/using-api/cel/ */
function asImmutable(schema: SchemaObject): void {
  letMark(schema);
  schema['x-kubernetes-validations'] = [{ rule: 'self == oldSelf', message: IMMUTABLE }];
}

/** What stands beside a `$ref` does not count. */
function letMark(schema: SchemaObject): void {
  if (schema.$ref === undefined) return;
  schema.allOf = [{ $ref: schema.$ref }];
  delete schema.$ref;
}
