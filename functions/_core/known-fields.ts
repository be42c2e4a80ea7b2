/** A document against its kind's schema, where fields that the schema does not know are told apart from those that are wrong. */

import * as v from 'valibot';

import { fieldPath, type FieldPath } from '#core/field-path.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';
import type { DocumentSchema } from '#core/kind.ts';
import { validateDocument, type Validated } from '#core/schema-causes.ts';

/** A strict object of valibot names one unknown field at a time: so many are looked for before they are errors. */
const MAX_ROUNDS = 50;

/** The document as the schema gives it, or what is wrong with it; and the fields that were left out of it. */
export type KnownFields = Validated & { readonly unknown: readonly string[] };

/**
 * Unknown are the fields that the schema drops. A schema that lets any field pass knows them all.
 * @param withoutRefused fields that the schema refuses for no other reason are unknown too, and left out; otherwise they
 * are causes.
 * @throws {TypeError} as `validateDocument` does.
 */
export function validateKnownFields(
  root: 'spec' | 'status',
  document: JsonObject,
  schema: DocumentSchema<object>,
  secretPaths: readonly string[],
  withoutRefused: boolean,
): KnownFields {
  const refused: FieldPath[] = [];
  let rest: JsonValue = document;
  let validated = validateDocument(root, document, schema, secretPaths);
  for (let round = 0; withoutRefused && validated.causes && round < MAX_ROUNDS; round++) {
    const found = refusedFields(schema, rest);
    if (found.length === 0) break;
    refused.push(...found);
    rest = found.reduce(without, rest);
    validated = validateDocument(root, rest as JsonObject, schema, secretPaths);
  }
  const dropped = validated.document ? droppedFields(rest, validated.document) : [];
  return { ...validated, unknown: [...refused, ...dropped].map((path) => fieldPath([root, ...path])) };
}

function refusedFields(schema: DocumentSchema<object>, document: JsonValue): FieldPath[] {
  const result = v.safeParse(schema, document);
  if (result.success) return [];
  return result.issues.flatMap(({ expected, path }) => {
    if (expected !== 'never' || path === undefined) return [];
    const steps = path.map(({ key }) => (typeof key === 'number' ? key : String(key)));
    return steps.length > 0 ? [steps] : [];
  });
}

/** A copy without one field; the value itself where it has none such. */
function without(value: JsonValue, [step, ...below]: FieldPath): JsonValue {
  if (step === undefined) return value;
  if (isJsonArray(value)) return value.map((element, index) => (index === step ? without(element, below) : element));
  if (!isJsonObject(value) || typeof step !== 'string') return value;
  const entries = Object.entries(value).flatMap(([key, child]) => {
    if (key !== step) return [[key, child] as const];
    return below.length === 0 ? [] : [[key, without(child, below)] as const];
  });
  return Object.fromEntries(entries);
}

/** The fields of one value that another one lacks. Where the shapes differ the schema has made something else of it. */
function droppedFields(from: JsonValue, to: JsonValue, at: FieldPath = []): FieldPath[] {
  if (isJsonArray(from) && isJsonArray(to)) {
    if (from.length !== to.length) return [];
    return from.flatMap((element, index) => droppedFields(element, to[index] ?? null, [...at, index]));
  }
  if (!isJsonObject(from) || !isJsonObject(to)) return [];
  return Object.entries(from).flatMap(([key, child]) => {
    const other = Object.hasOwn(to, key) ? to[key] : undefined;
    return other === undefined ? [[...at, key]] : droppedFields(child, other, [...at, key]);
  });
}
