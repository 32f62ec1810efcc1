import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { counter, gauge, type MetricRegistry } from '../base/metrics.ts';
import type { Handler } from './http-server.ts';

const compress = promisify(gzip);

/**
 * Serves the metrics of a registry, for any method, gzipped on request; with `name[]` in the query, repeated for each, only the
 * families of these names. Also counts the scrapes, each after its response.
 *
 * @throws {Error} if the registry already counts scrapes: make one handler per registry.
 */
export function metricsHandler(registry: MetricRegistry): Handler {
  const inFlight = gauge({
    registry,
    name: 'promhttp_metric_handler_requests_in_flight',
    help: 'Current number of scrapes being served.',
  });
  const served = counter({
    registry,
    name: 'promhttp_metric_handler_requests_total',
    help: 'Total number of scrapes by HTTP status code.',
    labels: ['code'],
  });
  for (const code of ['200', '500', '503']) served.inc({ code }, 0);
  let rendering: Promise<Rendering> | undefined;
  return async (request, response) => {
    inFlight.inc();
    response.once('close', () => {
      inFlight.dec();
      served.inc({ code: String(response.statusCode) });
    });
    // scrapes that come while one is being rendered share it, however many there are
    rendering ??= render(registry).finally(() => (rendering = undefined));
    const rendered = await rendering;
    const names = new URLSearchParams(queryOf(request.url)).getAll('name[]');
    const page = names.length === 0 ? rendered.whole() : pageOf(familiesText(rendered.families, new Set(names)));
    const zipped = acceptsGzip(request.headers['accept-encoding']);
    const body = zipped ? await page.zipped() : page.plain;
    response.writeHead(200, {
      'Content-Type': expositionType,
      'Content-Length': body.length,
      ...(zipped ? { 'Content-Encoding': 'gzip' } : {}),
    });
    response.end(body);
  };
}

interface Page {
  readonly plain: Buffer;
  readonly zipped: () => Promise<Buffer>;
}

/** One rendering. Its bytes are made once and shared by all responses: readers may be many and slow. */
interface Rendering {
  readonly families: readonly Family[];
  readonly whole: () => Page;
}

async function render(registry: MetricRegistry): Promise<Rendering> {
  const families = await gathered(registry);
  let whole: Page | undefined;
  return { families, whole: () => (whole ??= pageOf(familiesText(families))) };
}

function pageOf(text: string): Page {
  const plain = Buffer.from(text);
  let zipped: Promise<Buffer> | undefined;
  return { plain, zipped: () => (zipped ??= compress(plain)) };
}

function queryOf(url = ''): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start + 1);
}

/** Whether gzip is named, and not with a weight of zero. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = (Array.isArray(header) ? header.join(',') : (header ?? '')).toLowerCase().split(',');
  return codings.some((coding) => /^\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*$)[0-9.]+\s*)?$/.test(coding));
}

/** The content type of `exposition`. */
const expositionType = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores';

/** One sample as prom-client gives it. */
interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  /** Differs from the family's name within histograms. */
  readonly metricName?: string;
}

/** One family as prom-client gives it. */
interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly Sample[];
}

/** The metrics of a registry at this moment, sorted by name. */
async function gathered(registry: MetricRegistry): Promise<Family[]> {
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
function familiesText(families: readonly Family[], names?: ReadonlySet<string>): string {
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
