/** The page for people: what the process is, what waits and why. Read-only, and of data that may be shown to everybody. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { type DiagnosticsServer, sendNotFound, sendText } from '../http-server.ts';
import { acceptsGzip } from '../metrics-handler.ts';
import { statusPath } from '../http-paths.ts';
import {
  digested,
  type DigestedReport,
  type ExplainClaim,
  headline,
  parseStatusQuery,
  statusView,
} from './status-view.ts';
import { LiveStreams } from './live-streams.ts';
import { statusDocument } from './status-sections.ts';
import type { StatusReport } from './status-report.ts';
import { statusScript } from './status-script.ts';
import { statusIcon, statusStyle } from './status-style.ts';

interface StatusPageOptions {
  /** Collects the report. Called when the page is requested, at most once a second. */
  collect: (watched: { delay: StatusReport['process']['delay'] }) => Promise<StatusReport>;
  /** What a claim waits for; called when somebody looks at it. Default: that is not said. */
  explain?: ExplainClaim;
  /** Default: the machine's own time. */
  clock?: Clock;
  logger: Logger;
}

const compress = promisify(gzip);

const reboundText =
  'This host name is not served over plain HTTP, since the page of another site could use it to read this one.\n' +
  'Use https, an IP address, localhost (kubectl port-forward), or the name of a Service that ends in .svc.\n';

/** How long readers share a report, in milliseconds. */
const sharedMs = 1000;

/** Nothing but what this server sends, and in no frame; other sites can read nothing of it. */
const headers = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const;

const files: ReadonlyMap<string, { type: string; text: string }> = new Map([
  ['style.css', { type: 'text/css; charset=utf-8', text: statusStyle }],
  ['live.js', { type: 'text/javascript; charset=utf-8', text: statusScript }],
  ['icon.svg', { type: 'image/svg+xml', text: statusIcon }],
]);

export class StatusPage implements AsyncDisposable {
  readonly #options: StatusPageOptions;
  readonly #clock: Clock;
  readonly #explain: ExplainClaim;
  readonly #streams: LiveStreams;
  #report: Promise<DigestedReport> | undefined;
  #expiry: Timer | undefined;

  constructor(options: StatusPageOptions) {
    this.#options = options;
    this.#explain = options.explain ?? (() => undefined);
    this.#clock = options.clock ?? systemClock;
    this.#streams = new LiveStreams({
      ...options,
      report: () => this.#shared(),
      explain: this.#explain,
      clock: this.#clock,
    });
  }

  /** Adds the paths to a server. */
  serveOn(server: DiagnosticsServer): void {
    server.handle(statusPath, (request, response) => this.#respond(request, response, undefined));
    server.handle(`${statusPath}/`, (request, response) => {
      const name = (request.url ?? '').replace(/[?#].*$/s, '').replace(/^.*\//s, '');
      return this.#respond(request, response, name);
    });
  }

  async #respond(request: IncomingMessage, response: ServerResponse, name: string | undefined): Promise<void> {
    for (const [header, value] of Object.entries(headers)) response.setHeader(header, value);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      sendText(response, 405, 'only GET and HEAD\n');
      return;
    }
    if (mayBeRebound(request)) {
      sendText(response, 403, reboundText);
      return;
    }
    if (name === undefined) await this.#page(request, response);
    else if (name === 'live') this.#live(request, response);
    else if (name === 'headline') await this.#headline(request, response);
    else {
      const file = files.get(name);
      if (file === undefined) sendNotFound(response);
      else await send(request, response, file);
    }
  }

  async #page(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const report = await this.#shared();
    const text = statusDocument(await statusView(report, parseStatusQuery(request.url ?? ''), this.#explain));
    await send(request, response, { type: 'text/html; charset=utf-8', text });
  }

  /** For tabs that nobody looks at: what their titles say. */
  async #headline(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const report = await this.#shared();
    const { text, mark } = headline(report);
    const message = { time: new Date(report.atMs).toISOString(), text, mark };
    await send(request, response, { type: 'application/json', text: JSON.stringify(message) });
  }

  #live(request: IncomingMessage, response: ServerResponse): void {
    const from = request.headers['sec-fetch-site'];
    if (from !== undefined && from !== 'same-origin' && from !== 'none') {
      sendText(response, 403, 'only for the page itself\n'); // other sites could take all streams
    } else if (request.method === 'HEAD') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' }).end();
    } else if (this.#streams.isFull) {
      response.setHeader('Retry-After', '15');
      sendText(response, 503, 'too many readers follow the page: reload it instead\n');
    } else {
      this.#streams.open(request, response);
    }
  }

  /** The report of the last second, or a new one. */
  #shared(): Promise<DigestedReport> {
    if (this.#report !== undefined) return this.#report;
    const report = this.#options.collect({ delay: this.#streams.delay }).then(digested);
    this.#report = report;
    const drop = (): void => {
      if (this.#report === report) this.#report = undefined;
    };
    report.then(() => (this.#expiry = this.#clock.after(sharedMs, drop)), drop);
    return report;
  }

  /** Ends the live streams; safe to repeat. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#expiry?.cancel();
    this.#streams[Symbol.dispose]();
    return Promise.resolve();
  }
}

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { type, text }: { type: string; text: string },
): Promise<void> {
  const plain = Buffer.from(text);
  const zipped = acceptsGzip(request.headers['accept-encoding']);
  const body = zipped ? await compress(plain) : plain;
  response.writeHead(200, {
    'Content-Type': type,
    'Content-Length': body.length,
    Vary: 'Accept-Encoding',
    ...(zipped ? { 'Content-Encoding': 'gzip' } : {}),
  });
  response.end(body);
}

/** Names that no public DNS zone has: without a dot, those of Services, and `localhost` below (RFC 6761, "localhost."). */
const privateName = /^[^.]*$|\.(localhost|svc|cluster\.local)$/;

/**
 * Whether another site may have sent the request by DNS rebinding: the host name is in that site's DNS zone and now resolves to
 * the address of this server, so that the browser sees one origin. Addresses and private names cannot be rebound. A name to which the browser adds `Sec-Fetch-Site` was reached over TLS (Fetch Metadata Request Headers,
 * "Sec-Fetch-Site"): the server in front of this one has a certificate for it, and a page cannot set the header itself.
 */
function mayBeRebound({ headers }: IncomingMessage): boolean {
  const host = (headers.host ?? '').toLowerCase().replace(/:[0-9]*$/, '');
  const name = host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  return isIP(name) === 0 && !privateName.test(name) && headers['sec-fetch-site'] === undefined;
}
