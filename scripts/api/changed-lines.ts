/** Lines that only one of two texts has, in order, with `-` and `+` in front. Blank lines do not count. */
export function changedLines(before: string, after: string): string[] {
  const [old, fresh] = [before, after].map((text) => text.split('\n').filter((line) => line.trim() !== ''));
  const gone = without(old ?? [], fresh ?? []).map((line) => `- ${line}`);
  const added = without(fresh ?? [], old ?? []).map((line) => `+ ${line}`);
  if (gone.length + added.length > 0 || before === after) return [...gone, ...added];
  return ['the order of the lines is another'];
}

function without(lines: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of others) counts.set(line, (counts.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const left = counts.get(line) ?? 0;
    counts.set(line, left - 1);
    return left <= 0;
  });
}
