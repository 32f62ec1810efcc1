/** Keeps what the records say of the past, and of waits, recent: the next process can read no more of the past than the API server keeps. */
import { inSlices } from '../../base/event-loop.ts';
import type { Clock } from '../../base/clock.ts';
import type { VolumeLog, VolumeLogUser } from '../cache/volume-log.ts';
import type { IntentJournal, IntentRecord } from '../intent-journal/intent-journal.ts';
import type { IntentIndex } from './intent-index.ts';
import { quietAtMs } from './intent-state.ts';
import { type Intent, isLeftAlone, recordOf } from './intent.ts';

interface RecordUpkeepOptions {
  open: IntentIndex;
  journal: Pick<IntentJournal, 'note' | 'renewSince'>;
  /** What happened to the PersistentVolumes. */
  volumeLog: Pick<VolumeLog, 'usedBy' | 'reached' | 'verdict'>;
  clock: Clock;
}

/** How often it is checked which records need a newer version since which they had no PersistentVolume, in milliseconds. */
const renewEveryMs = 5000;
/** The first time this soon after a start, in milliseconds: a process that restarts again and again may not run longer. */
const firstRenewMs = 1000;
/** What a record says of a wait is renewed once the wait is shorter by so much, in milliseconds. */
const renewWaitMs = 20_000;
/** A version is renewed once the log of the volumes had gone past it so many checks ago. */
const renewAfterChecks = 4;

export class RecordUpkeep implements VolumeLogUser {
  readonly #options: RecordUpkeepOptions;
  /** Intents whose wait this process has recorded anew. */
  readonly #renewedWaits = new WeakSet<Intent>();

  constructor(options: RecordUpkeepOptions) {
    this.#options = options;
    options.volumeLog.usedBy(this);
  }

  /** The versions of which the history of the PersistentVolumes is needed. */
  neededVersions(): number[] {
    return this.#versions(({ since }) => since);
  }

  /** The versions from which on the history of storage is needed. */
  neededStorageVersions(): number[] {
    return this.#versions(({ firstSince }) => firstSince);
  }

  /** Those that are known, of the intents about which something is to be done. */
  #versions(of: (intent: Intent) => number): number[] {
    const versions: number[] = [];
    for (const intent of this.#options.open.list()) {
      if (!isLeftAlone(intent) && !Number.isNaN(of(intent))) versions.push(of(intent));
    }
    return versions;
  }

  /**
   * Keeps the versions of long attempts recent: the API server keeps little more than a minute of history, and the next
   * process can read no more. Works until the signal aborts.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, volumeLog } = this.#options;
    const reached: number[] = []; // at the last checks, the oldest first
    for (let pauseMs = firstRenewMs; ; pauseMs = renewEveryMs) {
      try {
        await clock.sleep(pauseMs, { signal });
      } catch {
        return;
      }
      const [oldest = volumeLog.reached] = reached;
      reached.push(volumeLog.reached);
      if (reached.length > renewAfterChecks) reached.shift();
      const due = [...this.#options.open.list()].filter(({ since }) => since < oldest);
      await inSlices(due, (intent) => this.#renewVersion(intent));
      this.#renewWaits();
    }
  }

  #renewVersion(intent: Intent): void {
    const { volumeLog, journal } = this.#options;
    const { since, state, record } = intent;
    if (!this.#options.open.has(intent) || isLeftAlone(intent) || state.kind === 'saved' || state.kind === 'foreign')
      return;
    if (volumeLog.verdict(record.volume.name, since).kind !== 'never') return;
    intent.since = volumeLog.reached;
    intent.record = { ...record, since: String(intent.since) };
    journal.renewSince(record.claim.uid, String(intent.since));
  }

  /** What is left to wait is recorded anew once it is less by so much: a process that restarts does not begin the wait again. */
  #renewWaits(): void {
    for (const intent of this.#options.open.list()) {
      const { phase, quietInMs = 0 } = intent.record;
      if (phase !== 'revoke' || quietInMs === 0) continue;
      const record = recordOf(intent, intent.state, this.#nowMs);
      // soon the first time: a process that ends again and again may not live longer
      const dueMs = this.#renewedWaits.has(intent) ? renewWaitMs : firstRenewMs;
      if (quietInMs - (record.quietInMs ?? 0) < dueMs) continue;
      this.#renewedWaits.add(intent);
      this.note(intent, record);
    }
  }

  /** The history until now is lost: nothing about the intents that are open now can be proved any more. */
  lostHistory(): void {
    for (const intent of this.#options.open.list()) {
      intent.since = NaN;
      const { since, ...record } = intent.record;
      if (since !== undefined) this.note(intent, record);
    }
  }

  /** What is left to wait, where that is no longer known: at the end of the process. Safe to repeat. @returns whether there is anything. */
  noteWaits(): boolean {
    let found = false;
    for (const intent of this.#options.open.list()) {
      const { state } = intent;
      if (state.kind !== 'creating' && state.kind !== 'revoking') continue;
      // a call that has not ended when the process does: nobody knows until when it runs
      if (state.kind === 'creating' ? state.isCalling : state.isWorking) continue;
      const quietMs = quietAtMs(state) - this.#nowMs;
      const isWaiting = quietMs > 0 && quietMs < Infinity && state.saves.isSent && !state.isShared;
      if (!isWaiting && intent.record.phase !== 'revoke') continue;
      found = true;
      this.note(intent, {
        ...recordOf(intent, intent.state, this.#nowMs),
        ...(isWaiting && { quietInMs: Math.ceil(quietMs) }),
      });
    }
    return found;
  }

  /** Changes the record of an open intent in passing. */
  note(intent: Intent, record: IntentRecord): void {
    if (isSameRecord(record, intent.record)) return;
    if (this.#options.open.change(intent, record)) this.#options.journal.note(record);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

/** Whether a write would change nothing. */
export function isSameRecord(a: IntentRecord, b: IntentRecord): boolean {
  const { plan, volume, claim, ...fields } = a;
  const same: Omit<IntentRecord, 'plan' | 'volume' | 'claim'> = b;
  const keys = ['phase', 'since', 'handle', 'problem', 'nameTaken', 'quietInMs'] as const;
  return plan === b.plan && volume === b.volume && claim === b.claim && keys.every((key) => fields[key] === same[key]);
}
