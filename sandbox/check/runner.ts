import { untilAborted } from '../../src/base/abort.ts';
import type { Bench } from './bench.ts';
import type { Check, CheckResult, Finding, Findings, Status } from './check.ts';
import { underSignal } from './check-signal.ts';
import { CheckFailed, CheckSkipped } from './outcome.ts';

export interface RunOptions {
  readonly bench: Bench;
  readonly checks: readonly Check[];
  /** How long a check may take, in milliseconds. */
  readonly limitMs: number;
  /** Ends the run: the checks that are left do not happen. */
  readonly signal: AbortSignal;
  /** Takes each result as it comes. */
  readonly report: (result: CheckResult) => void;
}

/** Makes one check after the other. @param before - results of an earlier part, which checks may need. */
export async function runChecks(options: RunOptions, before: readonly CheckResult[] = []): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of options.checks) {
    if (options.signal.aborted) break;
    const result = await runCheck(check, [...before, ...results], options);
    if (result === undefined) break;
    results.push(result);
    options.report(result);
  }
  return results;
}

/** @returns undefined when the run was ended meanwhile. */
async function runCheck(
  check: Check,
  before: readonly CheckResult[],
  { bench, limitMs, signal }: RunOptions,
): Promise<CheckResult | undefined> {
  const started = performance.now();
  const kept = new KeptFindings(check.section);
  const missing = before.find(({ id, status }) => check.needs?.includes(id) === true && lacking(status));
  let running: Promise<void> | undefined;
  try {
    if (missing !== undefined) throw new CheckSkipped(`it needs ${missing.id}, which did not pass`);
    const given = AbortSignal.any([AbortSignal.timeout(limitMs), signal]);
    running = underSignal(given, () => Promise.resolve(check.run(bench, kept)));
    await untilAborted(running, given);
  } catch (error) {
    kept.threw(error, limitMs);
    await Promise.allSettled([running]); // else it would disturb what comes next: the following checks, or the clean-up
    if (signal.aborted) return undefined;
  }
  const { id, title, section, part } = check;
  const { status, findings, notes } = kept;
  return { id, title, section, part, status, findings, notes, durationMs: performance.now() - started };
}

/** A check that others need and that does not apply leaves them nothing to do, too. */
function lacking(status: Status): boolean {
  return status === 'fail' || status === 'skip';
}

class KeptFindings implements Findings {
  readonly findings: Finding[] = [];
  readonly notes: string[] = [];
  readonly #section: string;
  #skipped = false;

  constructor(section: string) {
    this.#section = section;
  }

  fail(message: string, section = this.#section): void {
    this.findings.push({ level: 'fail', section, message });
  }

  warn(message: string, section = this.#section): void {
    this.findings.push({ level: 'warn', section, message });
  }

  note(message: string): void {
    this.notes.push(message);
  }

  threw(error: unknown, limitMs: number): void {
    if (error instanceof CheckSkipped) {
      this.#skipped = true;
      this.note(error.message);
    } else if (error instanceof CheckFailed) this.fail(error.message, error.section);
    else if ((error as Error).name === 'TimeoutError') {
      this.fail(`the check did not finish within ${limitMs / 1000} s (--check-timeout)`);
    } else this.fail(`the check itself failed: ${(error as Error).stack ?? String(error)}`);
  }

  get status(): Status {
    if (this.findings.some(({ level }) => level === 'fail')) return 'fail';
    if (this.findings.length > 0) return 'warn';
    return this.#skipped ? 'skip' : 'pass';
  }
}
