/** How many letters have to be inserted, removed or replaced to turn one into the other (Levenshtein distance). */
export function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [row, letter] of Array.from(from).entries()) {
    const current = [row + 1];
    for (const [column, other] of Array.from(to).entries()) {
      const replaced = (previous[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(replaced, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}
