/** Where the intent journal of this process lies, and what it is made with. */
import { silentLogger } from '../base/logger.ts';
import { isProvisionerOf } from '../csi/migration/in-tree-plugins.ts';
import { clusterJournal } from '../provision/intent-journal/cluster-journal.ts';
import type { IntentJournal } from '../provision/intent-journal/intent-journal.ts';
import { journalLock, leaseName, ownNamespace } from '../run/lock-name.ts';
import type { JournalAddress } from '../run/provisioner-journal.ts';
import type { Config } from './config.ts';
import type { FeatureOptions } from './run-phase-options.ts';

/** Where a journal is; its lock has the name of the lease, in node deployment with the node's. */
export interface JournalObjects extends JournalAddress {
  /** Name of the Lease of the leader election, also without it. */
  lease: string;
}

/** Undefined without journal. */
export function journalObjects(options: {
  config: Config;
  driver: { readonly name: string };
}): JournalObjects | undefined {
  const { config, driver } = options;
  const { intentJournal, nodeDeployment } = config;
  if (intentJournal === null) return undefined;
  const { namespace } = intentJournal;
  const lease = leaseName(driver.name, silentLogger); // the election warns of a name that had to be changed
  return {
    namespace: namespace === '' ? ownNamespace() : namespace,
    lease,
    lockName: journalLock(lease, nodeDeployment?.nodeName),
  };
}

/** Undefined with `--intent-journal=off`. */
export function sidecarJournal(options: FeatureOptions): IntentJournal | undefined {
  const { config, client, driver, metrics, clock, logger } = options;
  const objects = journalObjects(options);
  if (objects === undefined) return undefined;
  const { namespace, lockName } = objects;
  return clusterJournal({
    client,
    namespace,
    lockName,
    isKnownProvisioner: isProvisionerOf(driver.name), // names of drivers that differ in punctuation give the same lock
    // in node deployment each node writes a journal of its own, and a Pod's successor may overlap with it
    exclusive: config.leaderElection !== null && config.nodeDeployment === null,
    metrics: metrics.journal,
    clock,
    logger,
  });
}
