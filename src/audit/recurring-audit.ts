/** The audit that the sidecar carries out itself, every `--audit-interval`. It never deletes anything. */
import { joinSignals } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { type Audit, confirmed } from './audit.ts';
import { type AuditCounts, type AuditMetrics, countFindings } from './audit-metrics.ts';
import { type Finding, findingKey } from './finding.ts';
import type { Look } from './look.ts';

export interface RecurringAuditOptions {
  /** @returns undefined for a driver that does not list its volumes. */
  look: (signal: AbortSignal) => Promise<Look | undefined>;
  /** Adds what only single requests tell to the findings that are shown. */
  addFacts: (findings: readonly Finding[], signal: AbortSignal) => Promise<void>;
  /** A command to copy; undefined: nothing is to be done. */
  commandFor: (finding: Finding, audit: Audit) => string | undefined;
  /** From the end of one to the start of the next, in milliseconds; up to a quarter more, so that nodes spread. */
  intervalMs: number;
  metrics: AuditMetrics;
  /** A number from 0 up to 1, exclusive. */
  random: () => number;
  clock: Clock;
  logger: Logger;
}

/** A finding that is shown. */
export interface AuditRow {
  finding: Finding;
  /** To copy; undefined: nothing is to be done. */
  command: string | undefined;
}

/** The last audits, to be shown. */
export interface AuditState {
  /** Of the last one that could be carried out; undefined: none yet. */
  last: { rows: readonly AuditRow[]; counts: AuditCounts; endedAtMs: number; seconds: number } | undefined;
  /** Why there is no newer result; undefined: nothing is wrong. */
  problem: string | undefined;
}

/**
 * Pause before the first audit, if the interval is not shorter, in milliseconds; up to twice as long at random. The time of the last audit
 * is not known, and this process may not live long.
 */
const firstPauseMs = 5 * 60_000;
/** How many findings are kept to be shown: counts say the rest. */
const shownFindings = 20;
/** Max pause before the second look, in milliseconds: volumes in progress are saved by then. */
const maxSecondLookMs = 60_000;
/** How much of the interval is added at random at most. */
const jitter = 0.25;
/** A driver or an API server that takes longer is not waited for, in milliseconds. */
const maxRunMs = 30 * 60_000;

export class RecurringAudit {
  readonly #options: RecurringAuditOptions;
  readonly state: AuditState = { last: undefined, problem: undefined };
  /** Keys of what the audit before has found: it need not be looked at twice. */
  #confirmed: ReadonlySet<string> = new Set();
  #reported = '';
  /** When everything was last checked, or when this began, on the monotonic clock. */
  #checkedAtMs = 0;

  constructor(options: RecurringAuditOptions) {
    this.#options = options;
  }

  /** One audit after the other until the signal aborts. Never rejects otherwise. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, intervalMs, metrics, random } = this.#options;
    this.#checkedAtMs = clock.monotonicMs();
    const end = metrics.began(intervalMs / 1000, () => (clock.monotonicMs() - this.#checkedAtMs) / 1000);
    try {
      for (let pauseMs = Math.min(intervalMs, firstPauseMs) * (1 + random()); ;) {
        await clock.sleep(pauseMs, { signal });
        await this.#once(signal);
        pauseMs = intervalMs * (1 + jitter * random());
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      end();
    }
  }

  /** @throws when the signal aborts: then nothing is reported. */
  async #once(signal: AbortSignal): Promise<void> {
    const { clock, metrics, logger } = this.#options;
    const startMs = clock.monotonicMs();
    const secondsSince = (): number => (clock.monotonicMs() - startMs) / 1000;
    using joined = joinSignals([signal], { clock, timeoutMs: maxRunMs });
    try {
      const audit = await this.#audit(joined.signal);
      signal.throwIfAborted();
      if (audit === undefined) this.#cannotList();
      else this.#found(audit, secondsSince());
    } catch (error) {
      signal.throwIfAborted();
      metrics.ran(secondsSince(), false);
      const reason = joined.signal.aborted ? (joined.signal.reason as Error) : (error as Error);
      this.state.problem = reason.message;
      logger.warn({ err: reason }, 'The audit could not be carried out, trying again after the interval');
    }
  }

  /** What both looks have found, or one look and the audit before. */
  async #audit(signal: AbortSignal): Promise<Audit | undefined> {
    const { look, addFacts, clock, intervalMs } = this.#options;
    const first = await look(signal);
    if (first === undefined) return undefined;
    let last: Audit = { ...first, looks: 1, unsettled: 0 };
    if (first.findings.some((finding) => !this.#confirmed.has(findingKey(finding)))) {
      await clock.sleep(Math.min(maxSecondLookMs, intervalMs / 2), { signal });
      const second = await look(signal);
      if (second === undefined) return undefined;
      last = confirmed(first, second);
    }
    await addFacts(last.findings.slice(0, shownFindings), signal);
    return last;
  }

  #found(audit: Audit, seconds: number): void {
    const { commandFor, clock, metrics, logger } = this.#options;
    const counts = countFindings(audit.findings);
    const isComplete = audit.incomplete.length === 0;
    const endedAtMs = clock.wallMs();
    if (isComplete) this.#checkedAtMs = clock.monotonicMs();
    this.#confirmed = new Set(audit.findings.map(findingKey));
    const shown = audit.findings.slice(0, shownFindings);
    const rows = shown.map((finding) => ({ finding, command: commandFor(finding, audit) }));
    this.state.last = { rows, counts, endedAtMs, seconds };
    this.state.problem = isComplete ? undefined : audit.incomplete.join('; ');
    metrics.ran(seconds, isComplete);
    metrics.found(counts, isComplete ? endedAtMs : undefined);
    const reported = JSON.stringify([counts, audit.incomplete]);
    if (reported === this.#reported) return;
    this.#reported = reported;
    const level = counts.lost + counts.leaked + counts.stuck > 0 || !isComplete ? 'warn' : 'info';
    logger[level]({ ...counts, incomplete: audit.incomplete }, 'The audit has compared the volumes');
  }

  #cannotList(): void {
    const { metrics, logger } = this.#options;
    metrics.absent();
    this.state.last = undefined;
    this.#confirmed = new Set();
    this.#reported = '';
    const problem = 'the driver does not list its volumes: there is no audit';
    if (this.state.problem !== problem) {
      logger.info({}, 'CSI driver does not support LIST_VOLUMES, no audit is carried out');
    }
    this.state.problem = problem;
  }
}
