/** Why something is done by hand: asked for, and kept. */

import type { JsonObject } from '#core/json.ts';
import { StatusError } from '#core/status-error.ts';

const MAX_REASON_CHARACTERS = 500;

/** @throws {StatusError} BadRequest */
export function reasonOf({ reason }: JsonObject): string {
  if (typeof reason === 'string' && isPlainText(reason, MAX_REASON_CHARACTERS)) return reason;
  throw new StatusError(
    'BadRequest',
    `the body needs a "reason", which is kept: a text of 1 to ${MAX_REASON_CHARACTERS} characters in one line`,
  );
}

export function isPlainText(text: string, maxCharacters: number): boolean {
  return text.trim() !== '' && text.length <= maxCharacters && text.isWellFormed() && !/[\0-\x1f\x7f]/.test(text);
}
