import { GoDurationError, millisecondsOf, parseGoDuration } from '../base/go-duration.ts';

/** A duration of a subcommand's flag, in milliseconds. @throws {RangeError} for one that is negative, or none. */
export function durationOf(flag: string, text: string): number {
  try {
    const duration = parseGoDuration(text);
    if (duration >= 0n) return millisecondsOf(duration);
  } catch (error) {
    if (!(error instanceof GoDurationError)) throw error;
  }
  throw new RangeError(`${flag} must be a duration such as 1m or 90s, got ${JSON.stringify(text)}`);
}
