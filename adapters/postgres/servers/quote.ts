/**
 * Names, texts and numbers in statements that take no parameters, as most that define things. They come from stored
 * documents, whose types nobody has checked at times: what is no name and no number throws {TypeError}.
 */

/** @see https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS */
export function quoteName(name: string): string {
  return `"${checkedName(name).replaceAll('"', '""')}"`;
}

/** @returns the name. @throws {TypeError} for what is no text, or has NUL, which would end a message to the server. */
export function checkedName(name: unknown): string {
  if (typeof name !== 'string') throw new TypeError(`a name in SQL must be a text, not ${JSON.stringify(name)}`);
  if (name.includes('\0')) throw new TypeError(`a name in SQL must be a text without NUL, not ${JSON.stringify(name)}`);
  return name;
}

/** @throws {TypeError} for everything but a safe integer. */
export function integerText(value: unknown): string {
  if (Number.isSafeInteger(value)) return String(value);
  throw new TypeError(`a number in SQL must be a safe integer, not ${JSON.stringify(value)}`);
}

/** Right whatever `standard_conforming_strings` is. */
export function quoteText(text: string): string {
  const quoted = checkedName(text).replaceAll("'", "''");
  return text.includes('\\') ? ` E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`;
}
