/**
 * How many letters have to be inserted, removed or replaced to turn one text into the other (Levenshtein distance).
 *
 * @param options.swaps - two neighbours that are swapped count as one edit, too (optimal string alignment). Default false.
 */
export function editDistance(from: string, to: string, { swaps = false } = {}): number {
  const [letters, others] = [Array.from(from), Array.from(to)];
  let [beforePrevious, previous] = [[] as number[], Array.from({ length: others.length + 1 }, (_, column) => column)];
  for (const [row, letter] of letters.entries()) {
    const current = [row + 1];
    for (const [column, other] of others.entries()) {
      const replaced = (previous[column] ?? 0) + (letter === other ? 0 : 1);
      const isSwapped = swaps && row > 0 && column > 0 && letter === others[column - 1] && letters[row - 1] === other;
      const swapped = isSwapped ? (beforePrevious[column - 1] ?? 0) + 1 : Infinity;
      current.push(Math.min(replaced, swapped, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous.at(-1) ?? 0;
}
