/** The valibot schema of a spec or a status as OpenAPI schemas. */

import { toJsonSchema } from '@valibot/to-json-schema';

import {
  alternatives,
  refTo,
  resolved,
  type Components,
  type SchemaObject,
} from '#functions/api/openapi/schema-object.ts';
import type { DocumentSchema } from '#core/kind.ts';

/**
 * What clients may write. Schemas that refer to themselves are added to the components, under names that begin with
 * `prefix`. A check in code has no form in a schema: what the schema allows, the server may still refuse.
 */
export function documentSchema(
  schema: DocumentSchema<object> | undefined,
  prefix: string,
  components: Components,
): SchemaObject {
  const converted = schema === undefined ? undefined : convert(schema, prefix);
  if (!converted) return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const { $defs = {}, ...root } = converted;
  for (const [id, definition] of Object.entries($defs)) components[nameOf(prefix, id)] = tidied(definition);
  return tidied(root);
}

type Converted = SchemaObject & { readonly $defs?: Record<string, SchemaObject> };

/** Undefined for a schema that has no form as JSON: it must not take the document from the kinds beside it. */
function convert(schema: DocumentSchema<object>, prefix: string): Converted | undefined {
  try {
    const json = toJsonSchema(schema, {
      target: 'openapi-3.0',
      typeMode: 'input',
      errorMode: 'ignore',
      overrideRef: ({ referenceId }) => refTo(nameOf(prefix, referenceId)).$ref,
    });
    return JSON.parse(JSON.stringify(json)) as Converted;
  } catch {
    return undefined;
  }
}

function nameOf(prefix: string, id: string): string {
  return `${prefix}.${id}`;
}

/** OpenAPI 3.0 has no empty `required`, and closes an object with `false`. */
function tidied(schema: SchemaObject): SchemaObject {
  const { required, additionalProperties, properties, items, allOf, anyOf, oneOf, ...rest } = schema;
  return {
    ...rest,
    ...(required && required.length > 0 && { required }),
    ...(properties && { properties: tidiedAll(properties) }),
    ...(additionalProperties !== undefined && { additionalProperties: tidiedRest(additionalProperties) }),
    ...(items && { items: tidied(items) }),
    ...(allOf && { allOf: allOf.map(tidied) }),
    ...(anyOf && { anyOf: anyOf.map(tidied) }),
    ...(oneOf && { oneOf: oneOf.map(tidied) }),
  };
}

function tidiedAll(schemas: Record<string, SchemaObject>): Record<string, SchemaObject> {
  return Object.fromEntries(Object.entries(schemas).map(([key, schema]) => [key, tidied(schema)]));
}

function tidiedRest(schema: SchemaObject | boolean): SchemaObject | boolean {
  if (typeof schema === 'boolean') return schema;
  return isNothing(schema) ? false : tidied(schema);
}

function isNothing({ not, ...rest }: SchemaObject): boolean {
  return not !== undefined && Object.keys(not).length === 0 && Object.keys(rest).length === 0;
}

/** Marks every place that a path of a kind (`password`, `users.*.token`) leads to; where the schema has none, one is added. */
export function markPath(
  schema: SchemaObject,
  path: readonly string[],
  mark: (schema: SchemaObject) => void,
  components: Components,
): void {
  if (visit(schema, path, mark, components)) return;
  const [key = '', ...below] = path;
  if (key === '*') return;
  const added: SchemaObject = {};
  schema.properties = { ...schema.properties, [key]: added };
  if (below.length === 0) mark(added);
  else markPath(added, below, mark, components);
}

/** Whether the path leads anywhere. */
function visit(
  schema: SchemaObject,
  path: readonly string[],
  mark: (schema: SchemaObject) => void,
  components: Components,
): boolean {
  const [key, ...below] = path;
  if (key === undefined) {
    mark(schema);
    return true;
  }
  const target = resolved(schema, components);
  if (!target) return false;
  // Each of them is marked: no short cut behind the first.
  const found = alternatives(target).map((part) => visit(part, path, mark, components));
  const steps = stepsOf(target, key);
  for (const step of steps) markPathOrSelf(step, below);
  return steps.length > 0 || found.includes(true);

  function markPathOrSelf(step: SchemaObject, rest: readonly string[]): void {
    if (rest.length === 0) mark(step);
    else markPath(step, rest, mark, components);
  }
}

/** The schemas one key further; `*` is every element of a list and every property. */
function stepsOf({ properties = {}, items, additionalProperties }: SchemaObject, key: string): SchemaObject[] {
  const rest = typeof additionalProperties === 'object' ? [additionalProperties] : [];
  if (key === '*') return [...Object.values(properties), ...(items ? [items] : []), ...rest];
  return Object.hasOwn(properties, key) && properties[key] ? [properties[key]] : rest;
}
