import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { DeletionGuard } from './deletion-guard.ts';
import { DeletionProof } from './deletion-proof.ts';
import type { JournalMetrics } from '../intent-journal/journal-metrics.ts';
import type { RecentlySaved } from '../volume/recently-saved.ts';
import { RecordedSteps, type RecordedStepsOptions } from '../claim/recorded-steps.ts';
import { Revoker } from './revoker.ts';
import { SaveGuard } from '../volume/save-guard.ts';
import type { StorageHolders } from './storage-holders.ts';
import type { StorageIndex } from '../volume/storage-index.ts';
import type { VolumeLog } from './volume-log.ts';
import type { VolumeLogReader } from './volume-log-reader.ts';

/** The parts that a `Recoverable` provisioner adds to a controller. */
export interface Recovery {
  steps: RecordedSteps;
  saveGuard: SaveGuard;
  revoker: Revoker;
}

export interface RecoveryOptions extends Omit<RecordedStepsOptions, 'guard' | 'revoker' | 'saveGuard'> {
  recentlyServed: RecentlySaved;
  logger: Logger;
  log: VolumeLog;
  reader: VolumeLogReader;
  holders: StorageHolders;
  /** Undefined, where the caches were made without one: all volumes are listed for each deletion. */
  index: StorageIndex | undefined;
  journalMetrics: JournalMetrics;
  claimQueue: Pick<WorkQueue, 'addRateLimited'>;
  clock: Clock;
  /** Aborts when what is under way is to be abandoned. */
  abort: () => AbortSignal;
  /** The claim is to be synced again, after so many milliseconds. */
  onReleased: (uid: string, afterMs: number) => void;
  /** The claim has its volume, and its record is closed. */
  onServed: (uid: string) => void;
}

export function makeRecovery(options: RecoveryOptions): Recovery {
  const { intents, journalMetrics: metrics } = options;
  const proof = new DeletionProof({ ...options, onRewound: () => intents.lostHistory() });
  const guard = new DeletionGuard({ ...options, proof });
  const revoker = new Revoker({ ...options, guard, metrics });
  const saveGuard = new SaveGuard({ ...options, guard, revoker });
  return { steps: new RecordedSteps({ ...options, guard, revoker, saveGuard }), saveGuard, revoker };
}
