/** JSON Pointer, as it stands in JSON patches. @see https://www.rfc-editor.org/rfc/rfc6901 */

import { StatusError } from '#core/status-error.ts';
import { FORBIDDEN_KEYS, MAX_JSON_DEPTH } from '#core/strict-json.ts';

/** The steps from the top of a document to a value in it; none is the document itself. */
export type Pointer = readonly string[];

const BAD_ESCAPE = /~(?![01])/;

/** @throws {StatusError} BadRequest for what is no pointer, is too deep, or reaches a prototype. */
export function parsePointer(text: string): Pointer {
  if (text === '') return [];
  if (!text.startsWith('/')) throw malformed(text, 'must be empty or begin with "/"');
  if (BAD_ESCAPE.test(text)) throw malformed(text, 'has a "~" that is not "~0" or "~1"');
  const steps = text.slice(1).split('/', MAX_JSON_DEPTH + 1);
  if (steps.length > MAX_JSON_DEPTH) throw malformed(text, `is deeper than ${MAX_JSON_DEPTH} levels`);
  const pointer = steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const forbidden = pointer.find((step) => FORBIDDEN_KEYS.has(step));
  if (forbidden !== undefined) throw malformed(text, `has the key ${JSON.stringify(forbidden)}, which is not allowed`);
  return pointer;
}

/** The text of a pointer, cut short when it is very long. */
export function printPointer(pointer: Pointer): string {
  const text = pointer.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Whether a pointer is the other one, or leads to it. */
export function leadsTo(pointer: Pointer, other: Pointer): boolean {
  return pointer.length <= other.length && pointer.every((step, index) => step === other[index]);
}

function malformed(text: string, problem: string): StatusError {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return new StatusError('BadRequest', `the JSON pointer ${JSON.stringify(shown)} ${problem}`);
}
