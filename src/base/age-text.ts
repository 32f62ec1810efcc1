/** An age as kubectl shows it: in the largest unit of which there are at least two. `-` for NaN. */
export function ageText(ms: number): string {
  if (Number.isNaN(ms)) return '-';
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units: [string, number][] = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
  ];
  const [unit, length] = units.find(([, each]) => seconds >= 2 * each) ?? ['s', 1];
  return `${Math.floor(seconds / length)}${unit}`;
}
