/**
 * The array types that this schema uses. The driver would ask each new connection for all that there are; when the
 * connection breaks under that question, nobody catches the error and the process ends.
 *
 * @see https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
 */

import type postgres from 'postgres';

const TEXT_ARRAY = 1009;
const BIGINT_ARRAY = 1016;

/** `text[]` of one dimension, without NULL. */
export const textArray: postgres.PostgresType<readonly string[]> = arrayType(TEXT_ARRAY, parseArray);

/** `bigint[]` of one dimension, without NULL. Parameters may be given as decimal strings. */
export const bigintArray: postgres.PostgresType<readonly (bigint | string)[]> = arrayType(BIGINT_ARRAY, (text) =>
  parseArray(text).map((digits): bigint | string => BigInt(digits)),
);

function arrayType<T>(oid: number, parse: (text: string) => readonly T[]): postgres.PostgresType<readonly T[]> {
  return { to: oid, from: [oid], serialize: serializeArray, parse };
}

function serializeArray(values: unknown): string {
  // A literal that the caller has written itself.
  if (!Array.isArray(values)) return String(values);
  return `{${values.map((value) => `"${String(value).replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`;
}

/** Elements are quoted where they hold what means something outside: `{a,"b c","d\"e"}`. */
function parseArray(text: string): string[] {
  return Array.from(text.matchAll(/"((?:[^"\\]|\\.)*)"|([^{},]+)/gs), ([, quoted, plain = '']) =>
    quoted === undefined ? plain : quoted.replaceAll(/\\(.)/gs, '$1'),
  );
}
