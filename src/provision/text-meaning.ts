/** What the texts of failures and waits mean to people; who knows that is given to the controller. */
import type { Recorder } from '../kube/events/recorder.ts';
import { HeldBackError } from './claim/slow-set.ts';
import { waitingText } from './claim/waiting-text.ts';
import { failedReason, waitingReason } from './event-reasons.ts';
import { causeAnnotation, type MeaningOf, type TextMeaning } from './meaning.ts';

/** Adds to the events of waiting claims what to do, and to those of failures the cause: an aggregate keeps that of the one before else. */
export function withCures(recorder: Recorder, meaningOf: MeaningOf): Recorder {
  return {
    event(about, type, reason, message, options) {
      const cure = reason === waitingReason ? meaningOf(message)?.cure : undefined;
      const text = cure === undefined ? message : `${message}. ${cure}`;
      const isBare = reason === failedReason && options?.annotations === undefined;
      const annotated = isBare ? { ...options, ...causeAnnotation(message, undefined, meaningOf) } : options;
      recorder.event(about, type, reason, text, annotated);
    },
  };
}

/** Fields of the log line about a failed attempt. */
export function meaningFields(error: unknown, meaningOf: MeaningOf): TextMeaning | object {
  const message = error instanceof Error ? error.message : String(error);
  const text = error instanceof HeldBackError ? error.problem : (waitingText(error) ?? message);
  return meaningOf(text, error) ?? {};
}
