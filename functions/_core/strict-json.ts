/**
 * JSON from strangers. What it accepts is JSON (RFC 8259) that every reader understands alike and that PostgreSQL's
 * jsonb can hold: keys are distinct, text is well-formed and without NUL, numbers are exact, depth is bounded, and no
 * key reaches the prototype of anything. The engine's own parser tells neither of these, nor where an error lies.
 */

import { fieldPath } from '#core/field-path.ts';
import type { JsonValue } from '#core/json.ts';
import { StatusError } from '#core/status-error.ts';

export const MAX_JSON_DEPTH: number = 64;
/** jsonb prints numbers without exponent: 1e-300 is six bytes here and 302 in every answer and event. */
const MIN_MAGNITUDE = 1e-38;

const MAX_DUPLICATES = 50;

/** Keys that reach the prototype of something. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
const WHITESPACE = /[ \t\n\r]*/y;
const PLAIN_CHARACTERS = /[^"\\\0-\x1f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const WORD = /true|false|null/y;

/**
 * The value of a JSON text.
 * @throws {StatusError} BadRequest, with the position where the text is not JSON, or with the path of a value that is
 * refused. It never repeats a value.
 */
export function parseStrictJson(text: string): JsonValue {
  let at = 0;
  const path: (string | number)[] = [];
  const duplicates: string[] = [];
  skipWhitespace();
  const result = value();
  if (at < text.length) throw malformed('the end');
  if (duplicates.length > 0) throw duplicated();
  return result;

  function value(): JsonValue {
    const first = text[at];
    const parsed =
      first === '{'
        ? object()
        : first === '['
          ? array()
          : first === '"'
            ? string('value')
            : scan(WORD)
              ? word()
              : number();
    skipWhitespace();
    return parsed;
  }

  function object(): JsonValue {
    const result: Record<string, JsonValue> = {};
    enter();
    if (!take('}')) {
      do {
        skipWhitespace();
        if (text[at] !== '"') throw malformed('a key in double quotes');
        const key = string('key');
        if (FORBIDDEN_KEYS.has(key)) throw refused([...path, key], 'this key is not allowed');
        // Which one counts is told differently by every reader. All are named, once the whole text is known to be JSON.
        if (Object.hasOwn(result, key) && duplicates.length < MAX_DUPLICATES)
          duplicates.push(fieldPath([...path, key]));
        skipWhitespace();
        if (!take(':')) throw malformed('":"');
        skipWhitespace();
        path.push(key);
        result[key] = value();
        path.pop();
      } while (take(','));
      if (!take('}')) throw malformed('"," or "}"');
    }
    return result;
  }

  function array(): JsonValue {
    const result: JsonValue[] = [];
    enter();
    if (!take(']')) {
      do {
        skipWhitespace();
        path.push(result.length);
        result.push(value());
        path.pop();
      } while (take(','));
      if (!take(']')) throw malformed('"," or "]"');
    }
    return result;
  }

  function enter(): void {
    at++;
    if (path.length >= MAX_JSON_DEPTH) throw refused(path, `nested deeper than ${MAX_JSON_DEPTH} levels`);
    skipWhitespace();
  }

  function string(role: 'key' | 'value'): string {
    const start = at;
    let escaped = false;
    at++;
    while (scan(PLAIN_CHARACTERS) && text[at] !== '"') {
      if (!scan(ESCAPE))
        throw malformed(at >= text.length ? 'a closing double quote' : 'no bare control character or unknown escape');
      escaped = true;
    }
    at++;
    const parsed = escaped ? (JSON.parse(text.slice(start, at)) as string) : text.slice(start + 1, at - 1);
    if (parsed.includes('\0')) throw refused(path, `a ${role} here contains the character NUL (U+0000)`);
    if (!parsed.isWellFormed()) throw refused(path, `a ${role} here contains half of a surrogate pair`);
    return parsed;
  }

  function number(): number {
    const start = at;
    if (!scan(NUMBER)) throw malformed('a value');
    const written = text.slice(start, at);
    const parsed = Number(written);
    if (!Number.isFinite(parsed)) throw refused(path, 'the number is too large');
    const isZero = parsed === 0 && !/^[^eE]*[1-9]/.test(written);
    if (!isZero && Math.abs(parsed) < MIN_MAGNITUDE) throw refused(path, 'the number is too close to zero');
    if (Number.isInteger(parsed) && !Number.isSafeInteger(parsed)) {
      throw refused(path, 'integers beyond ±9007199254740991 are not exact in JSON; send it as a string');
    }
    if (!isExact(written, parsed)) {
      throw refused(path, 'the number has more digits than are kept (some 15); send it as a string');
    }
    return parsed;
  }

  function word(): boolean | null {
    const last = text.slice(at - 4, at);
    return last === 'null' ? null : last === 'true';
  }

  function take(symbol: string): boolean {
    if (text[at] !== symbol) return false;
    at++;
    return true;
  }

  function scan(pattern: RegExp): boolean {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return false;
    at = pattern.lastIndex;
    return true;
  }

  function skipWhitespace(): void {
    scan(WHITESPACE);
  }

  function malformed(expected: string): StatusError {
    const before = text.slice(0, at);
    const line = before.split('\n').length;
    const column = at - before.lastIndexOf('\n');
    const found =
      at >= text.length ? 'the end' : `character ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))}`;
    return new StatusError(
      'BadRequest',
      `the body is not JSON: found ${found} at position ${at} (line ${line}, column ${column}), expected ${expected}`,
    );
  }

  function duplicated(): StatusError {
    const message = 'the key stands twice in its object';
    const list = duplicates.map((field) => `duplicate field ${JSON.stringify(field)}`).join(', ');
    return new StatusError('BadRequest', `strict decoding error: ${list}: ${message}`, {
      details: { causes: duplicates.map((field) => ({ reason: 'FieldValueDuplicate', message, field })) },
    });
  }

  function refused(where: readonly (string | number)[], message: string): StatusError {
    const field = fieldPath(where);
    return new StatusError('BadRequest', `${field === '' ? 'the body' : field}: ${message}`, {
      details: { causes: [{ reason: 'FieldValueInvalid', message, field }] },
    });
  }
}

/** Longer ones would take long to look at; what a double can say after rounding has far fewer. */
const MAX_NUMBER_CHARACTERS = 200;
const MAX_PRECISION = 100;

/** Whether the double, rounded to as many digits as were written, has these digits. */
function isExact(written: string, parsed: number): boolean {
  if (String(parsed) === written) return true;
  if (written.length > MAX_NUMBER_CHARACTERS) return false;
  const digits = digitsOf(written);
  if (digits.length <= 15) return true;
  return digits.length <= MAX_PRECISION && digitsOf(parsed.toPrecision(digits.length)) === digits;
}

/** Significant ones, without zeros at the end. */
function digitsOf(number: string): string {
  const [mantissa = ''] = number.split(/[eE]/);
  return mantissa.replaceAll(/[-.]/g, '').replace(/^0+/, '').replace(/0+$/, '');
}
