/** Scrapes as series in the notation of promtool's unit tests (Prometheus, "Unit testing for rules"). */

/** Series by their names with labels; the value is a list of samples such as `0x9 1 3x2`. */
export type RecordedSeries = Record<string, string>;

const sampleLine = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** Puts scrapes that follow each other at a fixed interval together. */
export class SeriesRecorder {
  readonly #metrics: ReadonlySet<string>;
  readonly #labels: string;
  readonly #series = new Map<string, string[]>();
  #scrapes = 0;

  /**
   * @param metrics - names of samples that are kept.
   * @param targetLabels - what Prometheus adds to each series, such as `job="csi-provisioner"`.
   */
  constructor(metrics: ReadonlySet<string>, targetLabels: string) {
    this.#metrics = metrics;
    this.#labels = targetLabels;
  }

  /** @param page - a response in the text format; undefined: the scrape has failed. */
  add(page: string | undefined): void {
    for (const line of page?.split('\n') ?? []) {
      const [, name = '', labels = '', value = ''] = sampleLine.exec(line) ?? [];
      if (this.#metrics.has(name)) this.#add(`${name}{${[this.#labels, labels].filter(Boolean).join(',')}}`, value);
    }
    this.#scrapes++;
    for (const samples of this.#series.values()) {
      // As Prometheus does for a series that a scrape does not have any more.
      if (samples.length < this.#scrapes) samples.push(isMissing(samples.at(-1)) ? '_' : 'stale');
    }
  }

  #add(series: string, value: string): void {
    const samples = this.#series.get(series) ?? Array.from({ length: this.#scrapes }, () => '_');
    samples.push(value);
    this.#series.set(series, samples);
  }

  toJSON(): RecordedSeries {
    const entries = [...this.#series].map(([name, samples]): [string, string] => [name, notationOf(samples)]);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

const isMissing = (sample: string | undefined): boolean => sample === undefined || sample === '_' || sample === 'stale';

/** Equal samples in a row become one word: `1x3` is 1 and three more, `_x3` are three that are missing. */
function notationOf(samples: readonly string[]): string {
  const words: string[] = [];
  for (let start = 0; start < samples.length;) {
    const sample = samples[start]!;
    let end = start;
    while (samples[end] === sample) end++;
    const times = end - start;
    if (times === 1) words.push(sample);
    else words.push(sample === '_' ? `_x${times}` : `${sample}x${times - 1}`);
    start = end;
  }
  return words.join(' ');
}
