import type { IncomingMessage, ServerResponse } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock, Timer } from '../../base/clock.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { Logger } from '../../base/logger.ts';
import {
  type DigestedReport,
  type ExplainClaim,
  headline,
  parseStatusQuery,
  type StatusQuery,
  statusView,
} from './status-view.ts';
import { renderSections, type SectionId } from './status-sections.ts';

/** Open streams; a reader beyond them reads the page as it is. */
export const maxStreams = 8;
const intervalMs = 2000;
/** Well below the 20 seconds after which the page says that it is out of date. */
const maxIntervalMs = 12_000;
/** A report may take this share of the time. */
const maxShare = 0.05;
/** Where nothing changes, a message says only that, after so many milliseconds or with the next report. */
const silenceMs = 5000;

interface LiveStreamsOptions {
  report: () => Promise<DigestedReport>;
  explain: ExplainClaim;
  clock: Clock;
  logger: Logger;
}

interface Stream {
  readonly response: ServerResponse;
  readonly query: StatusQuery;
  /** What the reader has. */
  readonly sent: Map<SectionId, string>;
  sentAtMs: number;
}

/** Readers of the page that follow it as server-sent events (HTML Standard, "Server-sent events"). */
export class LiveStreams implements Disposable {
  readonly #options: LiveStreamsOptions;
  readonly #streams = new Set<Stream>();
  #timer: Timer | undefined;
  #delay: ReturnType<typeof monitorEventLoopDelay> | undefined;
  #closed = false;

  constructor(options: LiveStreamsOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#closed || this.#streams.size >= maxStreams;
  }

  /** How late timers were while somebody watched; undefined while nobody does. */
  get delay(): { p99Ms: number; maxMs: number } | undefined {
    const delay = this.#delay;
    if (delay === undefined || delay.count === 0) return undefined;
    return { p99Ms: Math.max(0, delay.percentile(99) / 1e6 - 20), maxMs: Math.max(0, delay.max / 1e6 - 20) };
  }

  /** The headers are those of the caller. */
  open(request: IncomingMessage, response: ServerResponse): void {
    const query = parseStatusQuery(request.url ?? '');
    const stream: Stream = { response, query, sent: new Map(), sentAtMs: this.#options.clock.monotonicMs() };
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
    response.write('retry: 3000\n\n');
    this.#streams.add(stream);
    response.once('close', () => this.#remove(stream));
    if (this.#streams.size === 1) this.#begin();
    else void this.#send([stream]);
  }

  #begin(): void {
    this.#delay = monitorEventLoopDelay({ resolution: 20 });
    this.#delay.enable();
    void this.#tick();
  }

  #remove(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#delay?.disable();
    this.#delay = undefined;
  }

  async #tick(): Promise<void> {
    const { clock } = this.#options;
    const startedMs = clock.monotonicMs();
    await this.#send([...this.#streams]);
    if (this.#streams.size === 0) return; // the last reader left meanwhile
    const tookMs = clock.monotonicMs() - startedMs;
    const pauseMs = Math.min(Math.max(intervalMs, tookMs / maxShare), maxIntervalMs);
    this.#timer?.cancel();
    this.#timer = clock.after(pauseMs, () => void this.#tick());
  }

  /** Never rejects. */
  async #send(streams: readonly Stream[]): Promise<void> {
    try {
      const report = await this.#options.report();
      for (const stream of streams) {
        if (sliceSpent()) await nextSlice();
        await this.#sendTo(stream, report);
      }
    } catch (error) {
      this.#options.logger.error({ err: error }, 'The status page could not be updated');
    }
  }

  async #sendTo(stream: Stream, report: DigestedReport): Promise<void> {
    const { response, query, sent } = stream;
    if (!isReading(response)) return; // a slow reader skips this one
    const view = await statusView(report, query, this.#options.explain);
    if (!isReading(response)) return;
    const parts: Partial<Record<SectionId, string>> = {};
    for (const [id, html] of renderSections(view)) {
      if (sent.get(id) === html) continue;
      parts[id] = html;
      sent.set(id, html);
    }
    const nowMs = this.#options.clock.monotonicMs();
    const isSilent = Object.keys(parts).length === 0;
    if (isSilent && nowMs - stream.sentAtMs < silenceMs) return;
    stream.sentAtMs = nowMs;
    const { text, mark } = headline(report);
    const message = { time: new Date(report.atMs).toISOString(), text, mark, parts };
    response.write(`data: ${JSON.stringify(message)}\n\n`);
  }

  /** Ends all streams; safe to repeat. */
  [Symbol.dispose](): void {
    this.#closed = true;
    for (const { response } of this.#streams) response.end();
  }
}

/** Whether it has taken what was written before. */
function isReading(response: ServerResponse): boolean {
  return !response.writableEnded && !response.destroyed && !response.writableNeedDrain;
}
