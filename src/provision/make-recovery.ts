import type { Clock } from '../base/clock.ts';
import type { Transport } from '../kube/transport.ts';
import { ClaimRecovery, type ClaimRecoveryOptions } from './claim-recovery.ts';
import { DeletionGuard } from './deletion-guard.ts';
import type { JournalMetrics } from './intent-journal/journal-metrics.ts';
import { Revoker } from './revoker.ts';
import { StorageHolders } from './storage-holders.ts';

/** The parts that a `Recoverable` provisioner adds to a controller. */
export interface Recovery {
  recovery: ClaimRecovery;
  revoker: Revoker;
}

export interface RecoveryOptions extends Omit<ClaimRecoveryOptions, 'guard' | 'revoker'> {
  transport: Transport;
  journalMetrics: JournalMetrics;
  clock: Clock;
  /** Aborts when what is under way is to be abandoned. */
  abort: () => AbortSignal;
  /** The claim is to be synced again, after so many milliseconds. */
  onReleased: (uid: string, afterMs: number) => void;
  /** The claim has its volume, and its record is closed. */
  onServed: (uid: string) => void;
}

export function makeRecovery(options: RecoveryOptions): Recovery {
  const { provisioner, journalMetrics: metrics } = options;
  const holders = new StorageHolders({ ...options, holds: (volume, handle) => provisioner.holds(volume, handle) });
  const guard = new DeletionGuard({ ...options, holders });
  const revoker = new Revoker({ ...options, guard, metrics });
  return { recovery: new ClaimRecovery({ ...options, guard, revoker }), revoker };
}
