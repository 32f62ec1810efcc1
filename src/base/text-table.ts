/** Rows of cells as lines, each column as wide as its longest cell, without spaces at the end. */
export function textTable(rows: readonly (readonly string[])[]): string[] {
  const columns = rows.reduce((max, row) => Math.max(max, row.length), 0);
  const widths = Array.from({ length: columns }, (_, column) =>
    rows.reduce((max, row) => Math.max(max, row[column]?.length ?? 0), 0),
  );
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
