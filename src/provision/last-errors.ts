/** Why the last attempt for a claim or a volume has ended without a result, and for what it waits. */
import type { Clock } from '../base/clock.ts';
import { shortValue } from '../base/short-value.ts';
import { DrainingError, ForeignIntentError, OtherProvisionerError } from './intent-journal/intent-journal.ts';
import { NameInUseError } from './intents/intent-index.ts';
import { VolumeInUseError } from './provisioner.ts';

/** The PersistentVolume that has the name is pending deletion: the claim waits for it. */
export class VolumePendingDeletionError extends Error {
  override readonly name = 'VolumePendingDeletionError';
}

/** For what an attempt waits that has found that something else has to end first; nothing has failed. See `claimWakes`. */
export type AttemptWait = 'name-in-use' | 'draining' | 'other-record' | 'foreign-record' | 'volume-leaving';

const beginnings: Record<AttemptWait, string> = {
  'name-in-use': 'Waiting',
  draining: 'Waiting for the end of a drain',
  'other-record': 'Waiting for another provisioner',
  'foreign-record': 'Waiting for another process',
  'volume-leaving': 'Waiting for a deletion',
};

/** Undefined for an error that is no such wait. */
export function attemptWait(error: unknown): AttemptWait | undefined {
  if (error instanceof NameInUseError) return 'name-in-use';
  if (error instanceof DrainingError) return 'draining';
  if (error instanceof OtherProvisionerError) return 'other-record';
  if (error instanceof ForeignIntentError) return 'foreign-record';
  return error instanceof VolumePendingDeletionError ? 'volume-leaving' : undefined;
}

/** The text of an event that says for whom or what a claim waits; undefined for an error that is no such wait. */
export function waitingText(error: unknown): string | undefined {
  const wait = attemptWait(error);
  return wait && `${beginnings[wait]}: ${(error as Error).message}`;
}

/** Why the last attempt for a claim ended without a volume, or why the last attempt to delete a volume failed. */
export interface LastError {
  /** As in the events, truncated at 1,000 characters. */
  readonly message: string;
  /** `waiting`: it waits for something else, such as for another process; nothing has failed. */
  readonly kind: 'failed' | 'waiting';
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
  /** What the error means, such as `class-not-found`; undefined: unknown. */
  readonly cause?: string | undefined;
  /** What has to change before the next attempt, which is not scheduled; undefined: it is scheduled. */
  readonly once?: string | undefined;
  /** When the first of the consecutive attempts that failed, or waited, ended; in the same unit. */
  readonly sinceMs: number;
}

const maxErrorsDefault = 20_000;
const maxMessageLength = 1000;
const shortLength = 200;

interface LastErrorsOptions {
  maxErrors?: number;
  isShort?: boolean;
  meaningOf?: ((text: string, error: unknown) => { cause: string } | undefined) | undefined;
}

/** The last error of each claim that waits, by UID, or of each volume, by name; if there are too many, the latest ones. */
export class LastErrors {
  readonly #clock: Clock;
  readonly #maxErrors: number;
  readonly #maxLength: number;
  readonly #meaningOf: LastErrorsOptions['meaningOf'];
  readonly #errors = new Map<string, LastError>();

  /**
   * @param options.maxErrors - default 20,000.
   * @param options.isShort - only the beginning of a message is kept. Default false.
   * @param options.meaningOf - returns the cause. Default: it is unknown.
   */
  constructor(clock: Clock, { maxErrors = maxErrorsDefault, isShort = false, meaningOf }: LastErrorsOptions = {}) {
    this.#clock = clock;
    this.#meaningOf = meaningOf;
    this.#maxErrors = maxErrors;
    this.#maxLength = isShort ? shortLength : maxMessageLength;
  }

  /** Notes an error. @param once - as in `LastError`. */
  add(uid: string, error: unknown, once?: string): void {
    const known = this.#errors.get(uid);
    const waiting = error instanceof VolumeInUseError ? error.reason : waitingText(error);
    const message = waiting ?? (error instanceof Error ? error.message : String(error));
    const kind = waiting === undefined ? 'failed' : 'waiting';
    const atMs = this.#clock.wallMs();
    this.#errors.delete(uid);
    this.#errors.set(uid, {
      message: shortValue(message, this.#maxLength),
      kind,
      cause: this.#meaningOf?.(message, error)?.cause,
      atMs,
      sinceMs: known?.kind === kind ? known.sinceMs : atMs,
      ...(once !== undefined && { once }),
    });
    if (this.#errors.size <= this.#maxErrors) return;
    for (const oldest of this.#errors.keys()) {
      this.#errors.delete(oldest);
      return;
    }
  }

  get(uid: string): LastError | undefined {
    return this.#errors.get(uid);
  }

  delete(uid: string): void {
    this.#errors.delete(uid);
  }
}
