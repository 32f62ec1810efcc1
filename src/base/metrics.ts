import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Holds the metrics of one process; passed to the code that records or serves them. */
export type MetricRegistry = Registry;

/** How much a Kubernetes metric may still change; put before its help text. */
export type Stability = 'ALPHA' | 'BETA' | 'STABLE';

/** What every metric needs. */
export interface MetricOptions<Label extends string = never> {
  readonly registry: MetricRegistry;
  /** In base units: seconds, bytes, `_total` for counters. */
  readonly name: string;
  readonly help: string;
  /** A family with labels appears with its first sample only. Default none. */
  readonly labels?: readonly Label[];
  /** Default none: library metrics carry no prefix. */
  readonly stability?: Stability;
}

/** An empty registry. */
export function createRegistry(): MetricRegistry {
  return new Registry();
}

/**
 * @param options.collect - called before each scrape.
 * @throws {Error} if the registry has a metric of that name.
 */
export function counter<Label extends string = never>(
  options: MetricOptions<Label> & { readonly collect?: (counter: Counter<Label>) => void },
): Counter<Label> {
  const { collect } = options;
  if (collect === undefined) return new Counter(settings(options));
  return new Counter({
    ...settings(options),
    collect() {
      collect(this);
    },
  });
}

/**
 * Makes a metric that goes up and down.
 *
 * @param options.collect - called before each scrape, which waits for it; sets the value then.
 * @throws {Error} if the registry has a metric of that name.
 */
export function gauge<Label extends string = never>(
  options: MetricOptions<Label> & { readonly collect?: (gauge: Gauge<Label>) => void | Promise<void> },
): Gauge<Label> {
  const { collect } = options;
  if (collect === undefined) return new Gauge(settings(options));
  return new Gauge({
    ...settings(options),
    collect() {
      return collect(this);
    },
  });
}

/**
 * @param options.buckets - upper bounds in ascending order, without infinity.
 * @throws {Error} if the registry has a metric of that name.
 */
export function histogram<Label extends string = never>(
  options: MetricOptions<Label> & { readonly buckets: readonly number[] },
): Histogram<Label> {
  return new Histogram({ ...settings(options), buckets: [...options.buckets] });
}

function settings<Label extends string>(
  options: MetricOptions<Label>,
): {
  name: string;
  help: string;
  labelNames: Label[];
  registers: Registry[];
} {
  const prefix = options.stability === undefined ? '' : `[${options.stability}] `;
  return {
    name: options.name,
    help: `${prefix}${options.help}`,
    labelNames: [...(options.labels ?? [])],
    registers: [options.registry],
  };
}
