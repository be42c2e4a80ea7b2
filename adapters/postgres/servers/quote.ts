/** Names and texts in statements that take no parameters, as most that define things. */

/** @see https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Right whatever `standard_conforming_strings` is. */
export function quoteText(text: string): string {
  const quoted = text.replaceAll("'", "''");
  return text.includes('\\') ? ` E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`;
}
