/** A family of metrics as a scraper sees it. */
export interface MetricFamily {
  name: string;
  /** `counter`, `gauge`, `histogram`. */
  type: string;
  /** `ALPHA`, `BETA` or `STABLE` as the help text begins; undefined where it does not. */
  stability: string | undefined;
  /** Names of all labels that occur, sorted, without the bounds of buckets. */
  labels: string[];
  /** Upper bounds of a histogram's buckets as they are written, without infinity. */
  buckets: string[];
  /** Names of the samples: the family's own, or those of its histogram. */
  samples: Set<string>;
}

/**
 * Reads an answer in the text format 0.0.4 (Prometheus, "Exposition formats").
 *
 * @throws {Error} for a line that belongs to no family, or that is none.
 */
export function parseExposition(text: string): MetricFamily[] {
  const families: MetricFamily[] = [];
  const helps = new Map<string, string>();
  for (const line of text.trimEnd().split('\n')) {
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (comment === null) addSample(families.at(-1), line);
    else if (comment[1] === 'HELP') helps.set(comment[2] ?? '', comment[3] ?? '');
    else {
      const [, , name = '', type = ''] = comment;
      const stability = /^\[([A-Z]+)\] /.exec(helps.get(name) ?? '')?.[1];
      families.push({ name, type, stability, labels: [], buckets: [], samples: new Set() });
    }
  }
  return families;
}

function addSample(family: MetricFamily | undefined, line: string): void {
  const [, name = '', labels = ''] = /^([a-z_A-Z:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
  const ending = family?.type === 'histogram' ? '(_bucket|_sum|_count)' : '';
  if (family === undefined || !new RegExp(`^${family.name}${ending}$`).test(name)) {
    throw new Error(`no sample of ${family?.name ?? 'a family'}: ${line}`);
  }
  family.samples.add(name);
  for (const [, label = '', value = ''] of labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
    const list = label === 'le' ? family.buckets : family.labels;
    const item = label === 'le' ? value : label;
    if (item !== '+Inf' && !list.includes(item)) list.push(item);
  }
  family.labels.sort();
}
