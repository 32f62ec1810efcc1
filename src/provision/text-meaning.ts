/** What the texts of failures and waits mean to people; who knows that is given to the controller. */
import type { Recorder } from '../kube/events/recorder.ts';
import { HeldBackError } from './claim/slow-set.ts';
import { waitingText } from './claim/waiting-text.ts';
import { waitingReason } from './event-reasons.ts';
import type { MeaningOf, TextMeaning } from './meaning.ts';

/** Adds to the events of waiting claims what to do. */
export function withCures(recorder: Recorder, meaningOf: MeaningOf): Recorder {
  return {
    event(...given) {
      const [about, type, reason, message, options] = given;
      const cure = reason === waitingReason ? meaningOf(message)?.cure : undefined;
      if (cure === undefined) recorder.event(...given);
      else recorder.event(about, type, waitingReason, `${message}. ${cure}`, options);
    },
  };
}

/** Fields of the log line about a failed attempt. */
export function meaningFields(error: unknown, meaningOf: MeaningOf): TextMeaning | object {
  const message = error instanceof Error ? error.message : String(error);
  const text = error instanceof HeldBackError ? error.problem : (waitingText(error) ?? message);
  return meaningOf(text, error) ?? {};
}
