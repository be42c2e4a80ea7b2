/** What the OpenAPI documents say can be sent: operations, and values of their schemas. */

import fc from 'fast-check';

import { hostileJson } from '#test/http/fuzz/hostile.ts';
import type { Client } from '#test/http/client.ts';
import { type Components, resolved, type SchemaObject } from '#functions/api/openapi/schema-object.ts';

export interface Operation {
  readonly method: string;
  /** With `{namespace}` and `{name}`. */
  readonly path: string;
  readonly plural: string;
  readonly query: readonly { readonly name: string; readonly schema: SchemaObject }[];
  /** JSON text of a body, by its type; absent where none is sent. */
  readonly body?: { readonly types: readonly string[]; readonly json: fc.Arbitrary<string> };
}

/** What secret fields are filled with: no answer may have it. */
export const SECRET = 'hush-hush-hush';

// oxlint-disable typescript/no-explicit-any -- documents are read as they come over the wire
export async function readOperations(client: Client): Promise<readonly Operation[]> {
  const { paths } = (await client.get('/openapi/v3')).body;
  const documents = await Promise.all(
    Object.values<any>(paths).map(async ({ serverRelativeURL }) => (await client.get(serverRelativeURL)).body),
  );
  return documents.flatMap((document) => operationsOf(document));
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

function operationsOf({ paths, components }: any): Operation[] {
  return Object.entries<any>(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const { parameters = [], requestBody, ...rest } = item[method];
      const component = rest.responses['200'] ?? rest.responses['201'];
      const object = component.content['application/json'].schema;
      const schema = method === 'patch' ? object : requestBody && Object.values<any>(requestBody.content)[0].schema;
      return {
        method: method.toUpperCase(),
        path,
        plural: /\/v[^/]+\/(?:namespaces\/\{namespace\}\/)?([^/]+)/.exec(path)?.[1] ?? '',
        query: parameters.filter((parameter: any) => parameter.in === 'query'),
        ...(schema && {
          body: { types: Object.keys(requestBody.content), json: jsonOf(schema, components.schemas) },
        }),
      };
    }),
  );
}
// oxlint-enable typescript/no-explicit-any

/** Texts that take the place of JSON strings stand between these. */
const RAW = /"@@raw:([^@]*)@@"/g;

/** JSON texts that meet a schema, mostly; somewhere in each, hostile ones may stand in place of a value. */
function jsonOf(schema: SchemaObject, components: Components): fc.Arbitrary<string> {
  return valueOf(schema, components, 0).map((value) =>
    JSON.stringify(value).replaceAll(RAW, (_, encoded: string) => decodeURIComponent(encoded)),
  );
}

function valueOf(schema: SchemaObject, components: Components, depth: number): fc.Arbitrary<unknown> {
  const raw = hostileJson.map((text) => `@@raw:${encodeURIComponent(text.toWellFormed())}@@`);
  return fc.oneof({ weight: 80, arbitrary: plainValueOf(schema, components, depth) }, { weight: 1, arbitrary: raw });
}

function plainValueOf(schema: SchemaObject, components: Components, depth: number): fc.Arbitrary<unknown> {
  const found = resolved(schema, components) ?? {};
  if (found.writeOnly === true) return fc.constant(SECRET);
  const some = [...(found.allOf ?? []), ...(found.anyOf ?? []), ...(found.oneOf ?? [])];
  if (some.length > 0) return fc.oneof(...some.map((each) => valueOf(each, components, depth)));
  if (found.enum) return fc.constantFrom(...found.enum);
  switch (found.type) {
    case 'object':
      return objectOf(found, components, depth);
    case 'array':
      return fc.array(valueOf(found.items ?? {}, components, depth + 1), { maxLength: 3 });
    case 'string':
      return fc.oneof(
        { weight: 20, arbitrary: fc.constantFrom('a', 'b', 'example.dev/a', '1', '') },
        { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
      );
    case 'integer':
    case 'number':
      return fc.oneof(
        { weight: 8, arbitrary: fc.integer({ min: 0, max: 3 }) },
        { weight: 1, arbitrary: fc.integer() },
        { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
      );
    case 'boolean':
      return fc.boolean();
    case undefined:
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function objectOf(
  { properties = {}, required = [], additionalProperties }: SchemaObject,
  components: Components,
  depth: number,
): fc.Arbitrary<unknown> {
  const fields = Object.entries(properties).map(
    ([name, schema]) => [name, depth > 4 ? fc.constant(null) : valueOf(schema, components, depth + 1)] as const,
  );
  // Few system fields at a time: each of them alone may be a reason to refuse.
  const known = fc.record(Object.fromEntries(fields), { requiredKeys: required }).chain((value) => {
    const entries = Object.entries(value);
    return fc.subarray(entries, { maxLength: Math.min(entries.length, depth === 0 ? 9 : 4) }).map((some) => {
      const needed = entries.filter(([name]) => required.includes(name));
      return Object.fromEntries([...some, ...needed]);
    });
  });
  if (additionalProperties === false) return known;
  const more = typeof additionalProperties === 'object' ? additionalProperties : {};
  const others = fc.dictionary(fc.constantFrom('x', 'y', 'z', 'toString'), plainValueOf(more, components, depth + 1), {
    maxKeys: depth > 2 ? 0 : 1,
  });
  return fc.tuple(known, others).map(([a, b]) => ({ ...b, ...a }));
}
