/** The durable side of intents, as the controller sees it. */
import type { Permit } from '../../base/permit.ts';
import { shortValue } from '../../base/short-value.ts';
import type { IntentRecord } from './intent-record.ts';

/** A record that an earlier process left, or one that works beside this one. */
export interface FoundIntent {
  record: IntentRecord;
  /**
   * - `own`: this process alone works on it now.
   * - `foreign`: it belongs to another process, which may be alive. `put` takes it over unless it is in the phase `delete`; until
   *   then nothing of it may be deleted. It is found again as `own` once the other process has been silent for long enough.
   */
  owner: 'own' | 'foreign';
  /** Why nothing may ever be deleted because of this record, such as a restored backup. Absent: it may be revoked. */
  reportOnly?: string;
}

/** Notified of changes to records that this process did not request. Methods are called synchronously and must not throw. */
export interface JournalListener {
  onFound(intent: FoundIntent): void;
  /** A foreign record was closed by its owner. */
  onGone(uid: string): void;
  /** An operator has discarded the record; it is gone from the journal already. */
  onDiscarded(uid: string): void;
  /** `isDraining` is false again. */
  onDrainEnded(): void;
  /** The API server has gone back to an earlier state: what happened to objects since then cannot be known. */
  onRewound(): void;
  /** Another process writes the journal although this one holds the lease: nothing may be written or called any more. */
  onFenced(error: Error): void;
}

/** `durable`: a crash loses nothing. `unprotected`: it cannot be written now, as the log says; work goes on without. */
export type Protection = 'durable' | 'unprotected';

/** Write-ahead records of volumes in progress. */
export interface IntentJournal {
  /**
   * Of a process that works beside others: valid while none of them may have taken its records over. Absent: that is
   * unknown, or leader election ensures it.
   */
  readonly permit?: Permit | undefined;
  /**
   * Reads what is there, takes over what may be taken over, and hands it to the listener. Resolves, too, where the journal
   * cannot be used; what is found later is handed over then. To be called once.
   *
   * @throws when the signal aborts: after that nothing is sent any more.
   */
  open(listener: JournalListener, signal: AbortSignal): Promise<void>;
  /**
   * An operator drains the journal: no new volume is to be begun. Whether that is so is known at the latest when `put` of the
   * new record resolves.
   */
  readonly isDraining: boolean;
  /**
   * Works in the background until the signal aborts: removals, renewals, retries. After that nothing is sent any more.
   * To be started before `open`.
   */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Writes a new record, or a changed one. Resolves once it is durable, or once it is clear that it cannot be; waits while the
   * API server is overloaded or away. Calls for one claim must not overlap.
   *
   * @throws {ForeignIntentError} when another process works on a volume for the claim in a way that must be awaited, and
   * whatever aborted the wait.
   */
  put(record: IntentRecord, signal: AbortSignal): Promise<Protection>;
  /** Changes a record in passing: the change is written together with others, at the latest before the lease is released. */
  note(record: IntentRecord): void;
  /** Replaces the `since` of a record, as `note` does: that costs little, even for thousands of records. Ignored for one that is not open. */
  renewSince(uid: string, since: string): void;
  /** The record is closed. Written together with others, at the latest after a second of quiet. Safe to repeat. */
  remove(uid: string): void;
  /** The record is closed; resolves once that is durable, or the journal cannot be written. Safe to repeat. */
  removeNow(uid: string, signal: AbortSignal): Promise<void>;
  /** Writes what is waiting. Resolves when done, or not possible. To be called last, while requests may still be sent. */
  flush(signal: AbortSignal): Promise<void>;
}

/** The claim's record belongs to another process and is in a phase that must end there first. */
export class ForeignIntentError extends Error {
  override readonly name: string = 'ForeignIntentError';
}

export function foreignIntent(uid: string): ForeignIntentError {
  return new ForeignIntentError(`another process works on the volume of the claim ${uid}`);
}

/** The journal holds a record of the claim that belongs to another provisioner: it is never touched here. */
export class OtherProvisionerError extends ForeignIntentError {
  override readonly name = 'OtherProvisionerError';

  /** @param provisioner - whose record it is. */
  constructor(uid: string, provisioner: string) {
    super(
      `the record of the claim ${uid} in the intent journal belongs to the provisioner ${JSON.stringify(shortValue(provisioner))}: ` +
        'only its own sidecar can close or discard it',
    );
  }
}

/** No new volume is begun while an operator drains the journal. */
export class DrainingError extends Error {
  override readonly name = 'DrainingError';

  constructor() {
    super('the intent journal is being drained, and no new volume is begun');
  }
}

/** A journal that keeps nothing: what is under way is known to this process only. */
export const noJournal: IntentJournal = {
  isDraining: false,
  open: () => Promise.resolve(),
  run: () => Promise.resolve(),
  put: () => Promise.resolve('unprotected'),
  note: () => undefined,
  renewSince: () => undefined,
  remove: () => undefined,
  removeNow: () => Promise.resolve(),
  flush: () => Promise.resolve(),
};
