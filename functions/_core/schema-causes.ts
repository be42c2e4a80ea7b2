/** A document against its kind's schema, and the schema's issues as causes of a `Status`. */

import * as v from 'valibot';

import { fieldPath } from '#core/field-path.ts';
import { isJsonObject, parseJson, type JsonObject } from '#core/json.ts';
import type { DocumentSchema } from '#core/kind.ts';
import type { StatusCause } from '#core/status-error.ts';

const MAX_CAUSES = 50;
const MAX_MESSAGE_CHARACTERS = 300;

export type Validated =
  | { readonly document: JsonObject; readonly causes?: undefined }
  | { readonly document?: undefined; readonly causes: readonly StatusCause[] };

/**
 * The document as the schema gives it, or one cause per field that is wrong. A secret's value is in no message.
 * @param secretPaths of the kind, such as `spec.password`.
 * @throws {TypeError} when the schema gives something that is not a JSON object: a fault of the kind.
 */
export function validateDocument(
  root: 'spec' | 'status',
  document: JsonObject,
  schema: DocumentSchema<object>,
  secretPaths: readonly string[],
): Validated {
  const result = v.safeParse(schema, document);
  if (result.success) return { document: asJson(result.output, root) };
  const causes = result.issues.slice(0, MAX_CAUSES).map((issue) => causeOf(issue, root, secretPaths));
  if (result.issues.length > MAX_CAUSES) {
    const message = `and ${result.issues.length - MAX_CAUSES} more problems`;
    causes.push({ reason: 'FieldValueTooMany', message, field: root });
  }
  return { causes };
}

/** What will be stored: printed and parsed once, so that it is JSON and nothing else. */
function asJson(output: object, root: string): JsonObject {
  const json = parseJson(JSON.stringify(output));
  if (!isJsonObject(json)) throw new TypeError(`the schema of ${root} must give an object`);
  return json;
}

function causeOf(issue: v.BaseIssue<unknown>, root: string, secretPaths: readonly string[]): StatusCause {
  const steps = (issue.path ?? []).map((item) => (typeof item.key === 'number' ? item.key : String(item.key)));
  const field = fieldPath([root, ...steps]);
  if (issue.expected === 'never' && steps.length > 0) {
    return { reason: 'FieldValueForbidden', message: 'unknown field', field };
  }
  if (issue.received === 'undefined' && issue.kind === 'schema') {
    return { reason: 'FieldValueRequired', message: 'required', field };
  }
  const reason =
    REASONS_BY_TYPE[issue.type] ?? (issue.kind === 'schema' ? 'FieldValueTypeInvalid' : 'FieldValueInvalid');
  const hidden = secretPaths.some((path) => overlaps(path.split('.'), [root, ...steps.map(String)]));
  const message = hidden ? hiddenMessage(issue) : issue.message;
  return { reason, message: shortened(message), field };
}

/** Says what is wanted, never what was sent. */
function hiddenMessage({ type, expected, ...issue }: v.BaseIssue<unknown>): string {
  const bound = LENGTHS[type];
  if (bound !== undefined && 'requirement' in issue) return `must be ${bound} ${String(issue.requirement)} long`;
  return `invalid; expected ${expected ?? 'another value'}`;
}

const LENGTHS: Readonly<Record<string, string>> = {
  min_length: 'at least',
  max_length: 'at most',
  length: 'exactly',
};

const REASONS_BY_TYPE: Readonly<Record<string, string>> = {
  picklist: 'FieldValueNotSupported',
  enum: 'FieldValueNotSupported',
  literal: 'FieldValueNotSupported',
  variant: 'FieldValueNotSupported',
  max_length: 'FieldValueTooLong',
  max_bytes: 'FieldValueTooLong',
  max_entries: 'FieldValueTooMany',
};

/** Whether one of two paths lies on the other: an issue above a secret may quote it, one below it always does. */
function overlaps(secret: readonly string[], path: readonly string[]): boolean {
  const length = Math.min(secret.length, path.length);
  return secret.slice(0, length).every((step, index) => step === '*' || step === path[index]);
}

function shortened(message: string): string {
  return message.length > MAX_MESSAGE_CHARACTERS ? `${message.slice(0, MAX_MESSAGE_CHARACTERS)}…` : message;
}
