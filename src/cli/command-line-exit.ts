import { ExitError, exitCodes } from '../run/exit.ts';
import { singleLine } from './klog-line.ts';
import type { LoggingConfig, ProcessLogger } from './logging.ts';

/** The exit of a process whose command line cannot be used. */
export class CommandLineError extends ExitError {
  override readonly name = 'CommandLineError';
  /** The requested logging; null where its flags could not be parsed. */
  readonly logging: LoggingConfig | null;

  constructor(problem: ExitError, logging: LoggingConfig | null) {
    super(problem.line, problem);
    this.logging = logging;
  }
}

/** Exit 2 for a command line that cannot be read. */
export function usageExit(line: string, cause?: unknown): ExitError {
  return new ExitError(line, { code: exitCodes.usage, severity: 'plain', cause });
}

/** Exit 2 for values that can never work, where the Go sidecar panics. */
export function panicExit(line: string, cause?: unknown): ExitError {
  return new ExitError(`panic: ${line}`, { code: exitCodes.usage, severity: 'plain', cause });
}

/**
 * Prints the last line of a process and returns its exit code.
 *
 * @param options.writeError - writes text to stderr, at once.
 */
export function reportExit(
  error: ExitError,
  options: { logger: ProcessLogger; writeError: (text: string) => void },
): number {
  if (error.line === '') return error.code;
  if (error.severity === 'plain') options.writeError(`${singleLine(error.line)}\n`);
  else options.logger.lastLine(error.severity, error.line, error.fields);
  return error.code;
}
