/**
 * `csi-sandbox check`: does to a driver what Kubernetes will do to it. First by calls to its socket, then in a sandbox, and at the
 * end it looks at all answers together and at what is left.
 */
import { Bench, type BenchOptions } from './bench.ts';
import type { Check, CheckResult } from './check.ts';
import { cleanUp } from './clean-up.ts';
import { runChecks } from './runner.ts';

export interface CheckDriverOptions {
  readonly bench: BenchOptions;
  readonly checks: readonly Check[];
  /** How long a check may take, in milliseconds. */
  readonly limitMs: number;
  /** Ends the run early; what was made is removed. */
  readonly signal: AbortSignal;
  readonly report: (result: CheckResult) => void;
}

/** @returns the results; fewer than checks when the signal has ended it. Never rejects for what a driver does. */
export async function checkDriver(options: CheckDriverOptions): Promise<CheckResult[]> {
  const { checks, limitMs, signal, report } = options;
  using bench = await Bench.start(options.bench);
  if (bench.facts.controller.has('LIST_VOLUMES')) {
    bench.listedBefore = await bench.list().then(ids, () => undefined);
  }
  try {
    const of = (part: Check['part']): Check[] => checks.filter((check) => check.part === part);
    const run = { bench, limitMs, signal, report };
    const direct = await runChecks({ ...run, checks: of('driver') });
    return [...direct, ...(await runChecks({ ...run, checks: of('answers') }, direct))];
  } finally {
    await cleanUp(bench);
  }
}

function ids(volumes: readonly { volume_id?: string }[]): Set<string> {
  return new Set(volumes.map(({ volume_id: id = '' }) => id));
}
