import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { JournalMetrics } from './journal-metrics.ts';

/** Options of `clusterJournal`. */
export interface ClusterJournalOptions {
  /** Its transport is fenced when the lease is lost. */
  client: KubeClient;
  /** Of the lock. */
  namespace: string;
  /** Name of the lock: the shards are `<lock name>-journal-0` and so on. */
  lockName: string;
  /** Whether the records of a provisioner are ours; those of others in the same objects are left alone. */
  isKnownProvisioner: (name: string) => boolean;
  /** Leader election keeps other processes from writing the journal: another writer means that the lease was lost. */
  exclusive: boolean;
  clock: Clock;
  logger: Logger;
  metrics?: Pick<JournalMetrics, 'written' | 'isProtected' | 'reported' | 'size'> | undefined;
  /** How often this process shows that it is alive while it has open records, in milliseconds. Default 10,000. */
  renewMs?: number;
  /** How often records of other processes are read, in milliseconds. Default 10,000. */
  pollMs?: number;
  /** Records of a process that was silent for so long are taken over, in milliseconds. Default 30,000. */
  adoptAfterMs?: number;
  /** Pause between writes under load, in milliseconds, up to five times as long for few records. Default 40. */
  groupMs?: number;
  /** Identifies this process. Default: random. */
  writer?: string;
  /**
   * Whether a `writer` is an earlier process that cannot run at the same time as this one: its records are taken over at
   * once. Default: no process is known to be.
   */
  isFormer?: ((writer: string) => boolean) | undefined;
}
