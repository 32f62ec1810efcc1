/** The audit that the sidecar carries out itself, every `--audit-interval`. It never deletes anything. */
import type { Gauge } from 'prom-client';
import { joinSignals } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { gauge, type MetricRegistry } from '../base/metrics.ts';
import { type Audit, confirmed } from './audit.ts';
import { type Finding, findingKey, type FindingState } from './finding.ts';
import type { Look } from './look.ts';

interface RecurringAuditOptions {
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

/** States that are counted: those in which somebody may have to do something about a volume. */
const countedStates = [
  'lost',
  'leaked',
  'stuck',
  'candidate',
  'unexplained',
] as const satisfies readonly FindingState[];

type AuditCounts = Readonly<Record<(typeof countedStates)[number], number>>;

/** What is counted about audits. */
export interface AuditMetrics {
  /**
   * This instance carries out audits from now on, every so many seconds; `uncheckedSeconds` is read at each scrape.
   *
   * @returns a function that ends this: then there are no samples, as another instance may have its own.
   */
  began(intervalSeconds: number, uncheckedSeconds: () => number): () => void;
  /** An audit has ended after so many seconds; `isComplete`: everything could be checked. */
  ran(seconds: number, isComplete: boolean): void;
  /** What an audit has found; with `completeAtMs` if everything could be checked, in milliseconds since the Unix epoch. */
  found(counts: AuditCounts, completeAtMs?: number): void;
  /** The driver does not list its volumes: nothing is known. */
  absent(): void;
}

/** Registers the `audit_*` families, without samples until there is something to report. @throws {Error} when the registry has them. */
export function auditMetrics(registry: MetricRegistry): AuditMetrics {
  const families = auditFamilies(registry);
  const { volumes, seconds, completeAt, isComplete, interval } = families;
  const absent = (): void => {
    volumes.reset();
    families.uncheckedSeconds = undefined;
    for (const each of [seconds, completeAt, isComplete, interval]) each.remove(); // without labels, a reset sets it to zero
  };
  let begin = (): void => undefined;
  absent();
  return {
    absent,
    began: (intervalSeconds, uncheckedSeconds) => {
      begin = () => {
        interval.set(intervalSeconds);
        families.uncheckedSeconds = uncheckedSeconds;
      };
      begin();
      return absent;
    },
    ran: (duration, complete) => {
      begin(); // after an upgrade the driver lists its volumes
      seconds.set(duration);
      isComplete.set(complete ? 1 : 0);
    },
    found: (counts, completeAtMs) => {
      for (const state of countedStates) volumes.set({ state }, counts[state]);
      if (completeAtMs !== undefined) completeAt.set(completeAtMs / 1000);
    },
  };
}

interface AuditFamilies {
  volumes: Gauge<'state'>;
  seconds: Gauge;
  completeAt: Gauge;
  isComplete: Gauge;
  interval: Gauge;
  /** Undefined: no audits are carried out. */
  uncheckedSeconds: (() => number) | undefined;
}

function auditFamilies(registry: MetricRegistry): AuditFamilies {
  const families: AuditFamilies = {
    volumes: gauge({
      registry,
      labels: ['state'],
      name: 'audit_volumes',
      help: 'Volumes that the last audit has found, by state',
    }),
    seconds: gauge({
      registry,
      name: 'audit_last_run_duration_seconds',
      help: 'Duration of the last audit in seconds',
    }),
    completeAt: gauge({
      registry,
      name: 'audit_last_complete_run_timestamp_seconds',
      help: 'End of the last audit that could check everything, in seconds since 1970',
    }),
    isComplete: gauge({
      registry,
      name: 'audit_last_run_complete',
      help: '1 if the last audit could check everything, 0 if it failed or could not',
    }),
    interval: gauge({
      registry,
      name: 'audit_interval_seconds',
      help: 'Value of --audit-interval in seconds, while this instance carries out audits',
    }),
    uncheckedSeconds: undefined,
  };
  gauge({
    registry,
    name: 'audit_unchecked_seconds',
    help: 'Seconds since an audit could last check everything, or since this instance began to carry out audits',
    collect: (unchecked) => {
      const { uncheckedSeconds } = families;
      if (uncheckedSeconds === undefined) unchecked.remove();
      else unchecked.set(uncheckedSeconds());
    },
  });
  return families;
}

function countFindings(findings: readonly Pick<Finding, 'state'>[]): AuditCounts {
  const counts = Object.fromEntries(countedStates.map((state) => [state, 0])) as Record<FindingState, number>;
  for (const { state } of findings) if (state in counts) counts[state]++;
  return counts;
}
