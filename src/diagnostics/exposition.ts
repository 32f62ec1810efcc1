import type { MetricRegistry } from '../base/metrics.ts';

/** The content type of `exposition`. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores';

/** One sample as prom-client gives it. */
interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  /** Differs from the family's name within histograms. */
  readonly metricName?: string;
}

/** One family as prom-client gives it. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly Sample[];
}

/** The metrics of a registry at this moment, sorted by name. */
export async function gathered(registry: MetricRegistry): Promise<Family[]> {
  const families = (await registry.getMetricsAsJSON()) as unknown as Family[];
  return families.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** All metrics of a registry as text. */
export async function exposition(registry: MetricRegistry): Promise<string> {
  return familiesText(await gathered(registry));
}

/**
 * Families as text. Those without a sample are left out, and numbers are written as Go writes them, because a bucket's bound is a
 * label that dashboards compare as text.
 *
 * @param names - only the families of these names; undefined: all.
 * @see Prometheus, "Exposition formats", text format 0.0.4.
 */
export function familiesText(families: readonly Family[], names?: ReadonlySet<string>): string {
  let text = '';
  for (const family of families) {
    if (family.values.length === 0 || names?.has(family.name) === false) continue;
    text += `# HELP ${family.name} ${escapeHelp(family.help)}\n# TYPE ${family.name} ${family.type}\n`;
    for (const { metricName, labels, value } of family.values) {
      text += `${metricName ?? family.name}${labelText(labels)} ${goNumber(value)}\n`;
    }
  }
  return text;
}

function labelText(labels: Sample['labels']): string {
  const { le, ...others } = labels;
  const parts = Object.entries({ ...others, le }) // a bucket's bound comes last, where Go puts it
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}="${typeof value === 'number' ? goNumber(value) : escapeLabel(value ?? '')}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function escapeHelp(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(value: string): string {
  return escapeHelp(value).replaceAll('"', '\\"');
}

/** A number as Go's `strconv.FormatFloat(n, 'g', -1, 64)` prints it: `1e-08`, `1e+06`, `0.25`, `+Inf`. */
export function goNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const [mantissa = '0', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(value);
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}
