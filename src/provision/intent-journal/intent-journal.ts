/** The durable side of intents, as the controller sees it. */
import type { Permit } from '../../base/permit.ts';
import { shortValue } from '../../base/short-value.ts';
import type { ObjectReference } from '../../kube/kube-object.ts';
import type { PersistentVolumeSpec } from '../objects.ts';
import type { Plan } from '../recoverable.ts';

/**
 * How far an intent is.
 *
 * - `create`: the backend is being called, or will be.
 * - `unclear`: an attempt ended without a clear result, or the storage was looked for by a call that creates it.
 * - `revoke`: its claim is gone, and it waits: once no request that was sent for it can be under way, in `quietInMs`, the storage is deleted.
 * - `delete`: the storage `handle` is being deleted; it must be gone before anything of the same name is created.
 * - `stuck`: it is left to an operator, or to a claim that wants the volume again; `reason` and `problem` say why.
 */
export type IntentPhase = (typeof intentPhases)[number];

/** All phases. `revoke` and `delete` may be followed by `unclear`: by a look, and by a deletion that came before the last late call. */
export const intentPhases = ['create', 'unclear', 'revoke', 'delete', 'stuck'] as const;

/**
 * Why a record is stuck.
 *
 * - `unproved`: a PersistentVolume may have had the storage, so it may be kept on purpose. Nothing is tried again.
 * - `undecidable`: what an attempt has left cannot be determined.
 * - `restored`: the record may be outdated, or that of another cluster.
 */
export type StuckReason = (typeof stuckReasons)[number];

export const stuckReasons = ['unproved', 'undecidable', 'restored'] as const;

/** Whether a record is stuck because its storage may be kept on purpose. */
export function isUnproved({ phase, reason }: Pick<IntentRecord, 'phase' | 'reason'>): boolean {
  return phase === 'stuck' && reason === 'unproved';
}

/** Zero for each phase. */
export function noRecords(): Record<IntentPhase, number> {
  return Object.fromEntries(intentPhases.map((phase) => [phase, 0])) as Record<IntentPhase, number>;
}

/** What the controller adds to the volume that a provisioner describes: it must be known when claim and class are gone. */
export interface VolumeTemplate {
  /** Of the PersistentVolume. */
  name: string;
  claimRef: ObjectReference;
  className: string;
  /** Of the class; becomes the annotation `pv.kubernetes.io/provisioned-by`. */
  provisioner: string;
  /** Defaults for what the provisioner leaves out. */
  defaults: Pick<
    PersistentVolumeSpec,
    'accessModes' | 'capacity' | 'mountOptions' | 'persistentVolumeReclaimPolicy' | 'volumeMode'
  >;
}

/** One volume that is to be created, or revoked. Plain data without secrets. There is at most one for a claim. */
export interface IntentRecord {
  claim: { namespace: string; name: string; uid: string };
  volume: VolumeTemplate;
  /** Of the provisioner; means nothing to the journal. */
  plan: Plan;
  phase: IntentPhase;
  /**
   * The resource version of the PersistentVolumes since which none has had the volume's name: as of the cache before the
   * volume was planned, or a later one until which everything was seen. Absent: none is known.
   */
  since?: string;
  /** The storage, where it is known in the phase `revoke`, or is stuck as unproved. In `delete`, and perhaps in `stuck`: its deletion may have been begun. */
  handle?: string;
  /** Why it is stuck: there in that phase alone, as is `problem`. */
  reason?: StuckReason;
  /** The same as the text of a log line. */
  problem?: string;
  /** A PersistentVolume of the name has other storage: what was created for the claim has no PersistentVolume. */
  nameTaken?: true;
  /**
   * So many milliseconds after this was written, no request that was sent for it can be under way any more, neither one that creates the storage
   * nor one that saves the volume. Holds until the record is written without it, which comes before each request. In the phase `delete`: it was
   * quiet when the deletion was first sent. Absent: that is not known.
   */
  quietInMs?: number;
  /** RFC 3339. */
  createdAt: string;
}

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
