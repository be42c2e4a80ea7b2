/**
 * The parts of metadata that clients choose: labels, annotations, finalizers, ownerReferences. The rules are those of
 * Kubernetes, with one cause per field.
 *
 * @see https://github.com/kubernetes/apimachinery/blob/master/pkg/api/validation/objectmeta.go
 */

import { fieldPath, type FieldPath } from '#core/field-path.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';
import { labelKeyProblem, labelValueProblem } from '#core/label.ts';
import { qualifiedNameProblem } from '#core/names.ts';
import type { OwnerReference } from '#core/resource.ts';
import type { StatusCause } from '#core/status-error.ts';

/** What a client chooses of an object's metadata, besides its name. */
export interface ChosenMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly finalizers: readonly string[];
  readonly ownerReferences: readonly OwnerReference[];
}

export const MAX_ANNOTATIONS_BYTES: number = 256 * 1024;

const OWNER_TEXTS = ['apiVersion', 'kind', 'name', 'uid'] as const;
const OWNER_FLAGS = ['controller', 'blockOwnerDeletion'] as const;
const OWNER_FIELDS: ReadonlySet<string> = new Set([...OWNER_TEXTS, ...OWNER_FLAGS]);

/**
 * Reads and checks them; adds to `causes` what is wrong, and to `unknownFields` what is left out. What is absent or null
 * is empty.
 */
export function readChosenMetadata(
  metadata: JsonObject,
  causes: StatusCause[],
  unknownFields: string[],
): ChosenMetadata {
  return {
    labels: labels(metadata['labels']),
    annotations: annotations(metadata['annotations']),
    finalizers: finalizers(metadata['finalizers']),
    ownerReferences: ownerReferences(metadata['ownerReferences']),
  };

  function labels(value: JsonValue | undefined): Record<string, string> {
    const texts = textMap('labels', value);
    for (const [key, text] of Object.entries(texts)) {
      report('FieldValueInvalid', ['labels', key], labelKeyProblem(key) ?? labelValueProblem(text));
    }
    return texts;
  }

  function annotations(value: JsonValue | undefined): Record<string, string> {
    const texts = textMap('annotations', value);
    let bytes = 0;
    for (const [key, text] of Object.entries(texts)) {
      report('FieldValueInvalid', ['annotations', key], qualifiedNameProblem(key.toLowerCase()));
      bytes += utf8Bytes(key) + utf8Bytes(text);
    }
    if (bytes > MAX_ANNOTATIONS_BYTES) {
      report(
        'FieldValueTooLong',
        ['annotations'],
        `must have at most ${MAX_ANNOTATIONS_BYTES} bytes in all; has ${bytes}`,
      );
    }
    return texts;
  }

  function textMap(field: string, value: JsonValue | undefined): Record<string, string> {
    if (value === undefined || value === null) return {};
    if (!isJsonObject(value)) {
      report('FieldValueTypeInvalid', [field], 'must be an object of texts');
      return {};
    }
    const texts: [string, string][] = [];
    for (const [key, text] of Object.entries(value)) {
      if (typeof text === 'string') texts.push([key, text]);
      else report('FieldValueTypeInvalid', [field, key], 'must be a text');
    }
    return Object.fromEntries(texts);
  }

  function finalizers(value: JsonValue | undefined): string[] {
    const names: string[] = [];
    for (const [index, name] of list('finalizers', value).entries()) {
      if (typeof name !== 'string') report('FieldValueTypeInvalid', ['finalizers', index], 'must be a text');
      else {
        report('FieldValueInvalid', ['finalizers', index], qualifiedNameProblem(name));
        // A finalizer is on or off: the same name twice is the name once.
        if (!names.includes(name)) names.push(name);
      }
    }
    if (names.includes('orphan') && names.includes('foregroundDeletion')) {
      report('FieldValueInvalid', ['finalizers'], 'orphan and foregroundDeletion cannot be both set');
    }
    return names;
  }

  function ownerReferences(value: JsonValue | undefined): OwnerReference[] {
    const owners = list('ownerReferences', value).flatMap((owner, index) => ownerReference(owner, index) ?? []);
    if (owners.filter((owner) => owner.controller === true).length > 1) {
      report('FieldValueInvalid', ['ownerReferences'], 'only one owner can have controller set to true');
    }
    return owners;
  }

  function ownerReference(value: JsonValue, index: number): OwnerReference | undefined {
    const at: FieldPath = ['ownerReferences', index];
    if (!isJsonObject(value)) {
      report('FieldValueTypeInvalid', at, 'must be an object');
      return undefined;
    }
    for (const field of OWNER_TEXTS) {
      const text = value[field];
      if (text === undefined || text === '') report('FieldValueRequired', [...at, field], 'required');
      else if (typeof text !== 'string') report('FieldValueTypeInvalid', [...at, field], 'must be a text');
    }
    for (const field of OWNER_FLAGS) {
      const flag = value[field] ?? null;
      if (flag !== null && typeof flag !== 'boolean')
        report('FieldValueTypeInvalid', [...at, field], 'must be true or false');
    }
    const known = Object.entries(value).filter(([field]) => OWNER_FIELDS.has(field));
    for (const field of Object.keys(value)) {
      if (!OWNER_FIELDS.has(field)) unknownFields.push(fieldPath(['metadata', ...at, field]));
    }
    return Object.fromEntries(known.filter(([, part]) => part !== null)) as unknown as OwnerReference;
  }

  function list(field: string, value: JsonValue | undefined): readonly JsonValue[] {
    if (value === undefined || value === null) return [];
    if (isJsonArray(value)) return value;
    report('FieldValueTypeInvalid', [field], 'must be a list');
    return [];
  }

  function report(reason: string, path: FieldPath, message: string | undefined): void {
    if (message !== undefined) causes.push({ reason, message, field: fieldPath(['metadata', ...path]) });
  }
}

function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    // Halves of surrogate pairs count two each: together the four bytes of their character.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit & 0xf800) !== 0xd800 ? 2 : 1;
  }
  return bytes;
}
