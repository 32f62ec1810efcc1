import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { counter, gauge, type MetricRegistry } from '../base/metrics.ts';
import { expositionType, type Family, familiesText, gathered } from './exposition.ts';
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
