/** A family as docs/metrics.md tells it. */
export interface ToldFamily {
  type: string;
  stability: string | undefined;
  /** Sorted. */
  labels: string[];
  buckets: string[];
  meaning: string;
  /** Such as `dashboard, alerts`; may be empty. */
  usedIn: string;
}

/**
 * Reads the tables of docs/metrics.md.
 *
 * @throws {Error} for a family that is told twice, or that has buckets and no row of its own.
 */
export function familiesOf(page: string): Map<string, ToldFamily> {
  const families = new Map<string, ToldFamily>();
  for (const cells of tableRows(page)) {
    const name = /^`(.*)`$/.exec(cells[0] ?? '')?.[1];
    if (name === undefined) continue;
    const known = families.get(name);
    if (cells.length === 2) {
      if (known === undefined) throw new Error(`${name} has buckets and no row`);
      known.buckets = (cells[1] ?? '').split(' ');
      continue;
    }
    if (known !== undefined) throw new Error(`${name} has two rows`);
    const [, kind = '', labels = '', meaning = '', usedIn = ''] = cells;
    const [type = '', stability] = kind.split(', ');
    const names = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label).sort();
    families.set(name, { type, stability, labels: names, buckets: [], meaning, usedIn });
  }
  return families;
}

/** The cells of all table rows of a Markdown text. */
function tableRows(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.slice(1, line.lastIndexOf('|')).split('|'))
    .map((cells) => cells.map((cell) => cell.trim()));
}
