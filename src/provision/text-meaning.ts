/** Adds what failures and waits mean to events and log lines, by the `MeaningOf` that the controller is given. */
import type { Recorder } from '../kube/events/recorder.ts';
import { failedReason, waitingReason } from './event-reasons.ts';
import { causeAnnotation, type MeaningOf, type TextMeaning } from './meaning.ts';

/** Adds to events of waiting claims what to do, and to those of failures the cause: else an aggregate keeps that of an earlier one. */
export function withCures(recorder: Recorder, meaningOf: MeaningOf): Recorder {
  return {
    event(...given) {
      const [about, type, reason, message, options] = given;
      const cure = reason === waitingReason ? meaningOf(message)?.cure : undefined;
      const cause =
        reason === failedReason && options?.annotations === undefined
          ? causeAnnotation(message, undefined, meaningOf)
          : undefined;
      if (cure !== undefined) recorder.event(about, type, waitingReason, `${message}. ${cure}`, options);
      else if (cause !== undefined) recorder.event(about, type, failedReason, message, { ...options, ...cause });
      else recorder.event(...given);
    },
  };
}

/** Fields of the log line about a failed attempt. */
export function meaningFields(error: unknown, meaningOf: MeaningOf): TextMeaning | object {
  const message = error instanceof Error ? error.message : String(error);
  return meaningOf(message, error) ?? {};
}
