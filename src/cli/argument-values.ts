/** Values of the flags of subcommands. */
import { GoDurationError, millisecondsOf, parseGoDuration } from '../base/go-duration.ts';
import { ExitError } from '../run/exit.ts';
import { type SubcommandCall, usageError } from './subcommand-call.ts';

/** A duration, in milliseconds. @throws {RangeError} for one that is negative, or none. */
export function durationOf(flag: string, text: string): number {
  try {
    const duration = parseGoDuration(text);
    if (duration >= 0n) return millisecondsOf(duration);
  } catch (error) {
    if (!(error instanceof GoDurationError)) throw error;
  }
  throw new RangeError(`${flag} must be a duration such as 1m or 90s, got ${JSON.stringify(text)}`);
}

/** The value of `--output`. @throws {RangeError} for any other. */
export function outputOf(text: string): 'table' | 'json' {
  if (text === 'table' || text === 'json') return text;
  throw new RangeError(`--output must be table or json, got ${JSON.stringify(text)}`);
}

/** `NAMESPACE/NAME`. @throws {RangeError} for anything else. */
export function namespacedNameOf(flag: string, text: string): { namespace: string; name: string } {
  const [namespace = '', name = '', ...rest] = text.split('/');
  if (namespace !== '' && name !== '' && rest.length === 0) return { namespace, name };
  throw new RangeError(`${flag} must be NAMESPACE/NAME, got ${JSON.stringify(text)}`);
}

/** What `read` returns. @throws {SubcommandError}, which points to the help, for its `RangeError` and `ExitError`. */
export function readValues<T>(call: SubcommandCall, { usageCode }: { usageCode: number }, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ExitError) throw usageError(call, error.line, { usageCode, cause: error });
    if (error instanceof RangeError) throw usageError(call, error.message, { usageCode });
    throw error;
  }
}
