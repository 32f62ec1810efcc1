import type { Bench } from './bench.ts';

/** `fail`: against a MUST of the specification, or Kubernetes cannot work with it; `warn`: against a SHOULD, or a risk. */
export type Level = 'fail' | 'warn';

export interface Finding {
  readonly level: Level;
  /** Heading of the CSI specification, or `Kubernetes: ...`. */
  readonly section: string;
  readonly message: string;
}

/** Takes what a check finds. */
export interface Findings {
  /** @param section - by default that of the check. */
  fail(message: string, section?: string): void;
  warn(message: string, section?: string): void;
  /** What is worth a line although nothing is wrong. */
  note(message: string): void;
}

export interface Check {
  /** Stable, such as `create-repeat`. */
  readonly id: string;
  /** What holds when it passes. */
  readonly title: string;
  readonly section: string;
  readonly part: Part;
  /** Checks that must not have failed; this one is skipped otherwise. */
  readonly needs?: readonly string[];
  /** @throws {CheckFailed} {CheckSkipped} */
  run(bench: Bench, findings: Findings): Promise<void> | void;
}

/**
 * `driver`: calls to its socket; `kubernetes`: claims in the sandbox; `answers`: what all answers together show;
 * `sanity`: a test of csi-sanity.
 */
export type Part = 'driver' | 'kubernetes' | 'answers' | 'sanity';

export type Status = 'pass' | 'fail' | 'warn' | 'skip';

export interface CheckResult {
  readonly id: string;
  readonly title: string;
  readonly section: string;
  readonly part: Part;
  readonly status: Status;
  readonly findings: readonly Finding[];
  /** Why it was skipped, or what is worth a line. */
  readonly notes: readonly string[];
  readonly durationMs: number;
}
