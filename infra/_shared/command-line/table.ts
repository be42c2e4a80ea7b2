/** Rows as psql shows them. */

const NUMBER = /^-?\d+(\.\d+)?$/;

/** Aligned columns, numbers to the right, NULL as nothing, then the count. Line breaks in values stay as `\n`. */
export function formatTable(header: readonly string[], rows: readonly (readonly (string | null)[])[]): string {
  const cells = rows.map((row) => row.map((value) => (value ?? '').replaceAll('\n', '\\n')));
  const widths = header.map((name, column) =>
    cells.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), name.length),
  );
  const isNumeric = header.map((_, column) => cells.every((row) => NUMBER.test(row[column] || '0')));
  const lines = [
    line(header, (text, width) => text.padEnd(width)),
    widths.map((width) => '-'.repeat(width + 2)).join('+'),
    ...cells.map((row) =>
      line(row, (text, width, column) => (isNumeric[column] ? text.padStart(width) : text.padEnd(width))),
    ),
    `(${rows.length} ${rows.length === 1 ? 'row' : 'rows'})`,
  ];
  return `${lines.join('\n')}\n`;

  function line(texts: readonly string[], pad: (text: string, width: number, column: number) => string): string {
    return ` ${texts.map((text, column) => pad(text, widths[column] ?? 0, column)).join(' | ')}`.trimEnd();
  }
}
