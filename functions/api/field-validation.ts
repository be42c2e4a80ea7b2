/**
 * What becomes of fields that nobody knows: `fieldValidation=Strict` refuses them, `Warn` drops them and says so, `Ignore`
 * drops them. Without the parameter it is `Warn`, except for fields that the schema of a kind refuses: these are errors.
 * A field that stands twice is refused always: which one counts, every reader tells differently.
 *
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation
 */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { wordParameter } from '#http/query.ts';
import { StatusError } from '#core/status-error.ts';

/** Headers are bounded everywhere: by default at 16 KiB in Node.js clients. */
const MAX_WARNINGS = 20;
const MAX_CAUSES = 50;

export interface FieldValidation {
  /** Whether fields that a schema refuses are unknown fields like others: where the caller says what becomes of them. */
  readonly coversRefused: boolean;
  /** Takes note of fields that will be dropped. */
  found(fields: readonly string[]): void;
  /** @throws {StatusError} BadRequest that names every field found so far, where they are errors. */
  refuse(): void;
  /** Adds `Warning` headers for them to the answer, where that is asked for. */
  warn(): void;
}

/** @throws {StatusError} BadRequest for an unknown value of the parameter. */
export function fieldValidation(c: Context<HttpEnv>): FieldValidation {
  const chosen = wordParameter(c, 'fieldValidation', ['Strict', 'Warn', 'Ignore']);
  const mode = chosen ?? 'Warn';
  // A patch may be tried more than once.
  const unknown = new Set<string>();
  return {
    coversRefused: chosen !== undefined,
    found(fields) {
      for (const field of fields) unknown.add(field);
    },
    refuse() {
      if (mode === 'Strict' && unknown.size > 0) throw strictDecodingError([...unknown]);
    },
    warn() {
      if (mode !== 'Warn') return;
      const fields = [...unknown];
      const warnings = fields.slice(0, MAX_WARNINGS).map((field) => `unknown field ${JSON.stringify(field)}`);
      if (fields.length > MAX_WARNINGS) warnings.push(`and ${fields.length - MAX_WARNINGS} more unknown fields`);
      for (const warning of warnings) c.header('Warning', `299 - ${quoted(warning)}`, { append: true });
    },
  };
}

function strictDecodingError(fields: readonly string[]): StatusError {
  const shown = fields.slice(0, MAX_CAUSES);
  const list = shown.map((field) => `unknown field ${JSON.stringify(field)}`).join(', ');
  const more = fields.length > shown.length ? `, and ${fields.length - shown.length} more` : '';
  const causes = shown.map((field) => ({ reason: 'FieldValueForbidden', message: 'unknown field', field }));
  return new StatusError('BadRequest', `strict decoding error: ${list}${more}`, { details: { causes } });
}

/** Headers hold ASCII alone. @see https://www.rfc-editor.org/rfc/rfc9110#section-5.6.4 */
function quoted(text: string): string {
  const ascii = text.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `"${ascii.replaceAll(/["\\]/g, '\\$&')}"`;
}
