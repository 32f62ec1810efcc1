import { closeSync, constants, openSync, writeSync } from 'node:fs';
import type { Logger } from '../base/logger.ts';

/**
 * The form of the last line on stderr: `plain` unchanged, `error` and `fatal` as a log line of that severity in the
 * configured format.
 */
type ExitSeverity = 'plain' | 'error' | 'fatal';

/** The exit codes that a supervisor can distinguish. */
export const exitCodes = { done: 0, failure: 1, usage: 2, fatal: 255 } as const;

/** A failure that ends the process: only `main` acts on it. */
export class ExitError extends Error {
  override readonly name: string = 'ExitError';
  /** The exit code of the process. */
  readonly code: number;
  /** What to print last; line breaks in it are escaped. Empty: nothing. */
  readonly line: string;
  readonly severity: ExitSeverity;
  /** Fields of the log line; without any, `line` is printed unquoted. */
  readonly fields: object;

  constructor(line: string, options: { code: number; severity: ExitSeverity; fields?: object; cause?: unknown }) {
    super(line, { cause: options.cause });
    this.code = options.code;
    this.line = line;
    this.severity = options.severity;
    this.fields = options.fields ?? {};
  }
}

/** Exit 255 after one fatal log line: the configuration or the cluster does not allow a start. */
export function fatalExit(line: string, cause?: unknown): ExitError {
  return new ExitError(line, { code: exitCodes.fatal, severity: 'fatal', cause });
}

/** Exit 1 after one error log line. */
export function failureExit(line: string, fields: object = {}, cause?: unknown): ExitError {
  return new ExitError(line, { code: exitCodes.failure, severity: 'error', fields, cause });
}

/** Exit 2 for a command line that cannot be read. */
export function usageExit(line: string, cause?: unknown): ExitError {
  return new ExitError(line, { code: exitCodes.usage, severity: 'plain', cause });
}

/** Exit 2 for values that can never work, where the Go sidecar panics. */
export function panicExit(line: string, cause?: unknown): ExitError {
  return new ExitError(`panic: ${line}`, { code: exitCodes.usage, severity: 'plain', cause });
}

/** Where the kubelet reads why a container ended, unless the Pod names another file. */
const usualPath = '/dev/termination-log';

/**
 * Leaves a message for the Pod's status (Kubernetes page "Determine the Reason for Pod Failure"). Outside a Pod there is
 * no such file and nothing is written; any other failure is only logged. A repeat replaces the message.
 *
 * @param options.path - default `/dev/termination-log`.
 */
export function leaveTerminationMessage(message: string, options: { logger: Logger; path?: string }): void {
  const { logger, path = usualPath } = options;
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_TRUNC);
    try {
      writeSync(file, message);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    logger.error({ err: error, path }, 'The termination message could not be written');
  }
}
