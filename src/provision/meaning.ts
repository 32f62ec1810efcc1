/** What a failure means to users, and how its event says so to programs. */
import { causeKey } from './event-reasons.ts';

export interface TextMeaning {
  /** Such as `class-not-found`. */
  cause: string;
  /** What to do, without a full stop. */
  cure: string;
}

/**
 * @param text - of a failed attempt, or of an event that says what a claim waits for.
 * @param error - with which the attempt failed.
 */
export type MeaningOf = (text: string, error?: unknown) => TextMeaning | undefined;

/** The annotation of an event about a failed attempt. */
export function causeAnnotation(
  text: string,
  error: unknown,
  meaningOf: MeaningOf | undefined,
): { annotations?: Record<string, string> } {
  const cause = meaningOf?.(text, error)?.cause;
  return cause === undefined ? {} : { annotations: { [causeKey]: cause } };
}
