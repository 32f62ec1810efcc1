import { isProvisionerOf } from '../../csi/migration/in-tree-plugins.ts';
import type { Feature } from '../../run/feature.ts';
import { journalLock, ownNamespace } from '../../run/lock-name.ts';
import { warnOfJournals } from '../../run/provisioner-journal.ts';
import type { FeatureOptions } from '../run-phase-options.ts';
import { journalObjects } from '../sidecar-journal.ts';

/**
 * Warns at the start of records where the journal was before `--leader-election-namespace` or `--node-deployment` was changed. Undefined
 * without journal.
 */
export function otherJournalsFeature(options: FeatureOptions): Feature | undefined {
  const { config, client, driver, clock, logger } = options;
  const own = journalObjects(options);
  if (own === undefined) return undefined;
  const { podNamespace = ownNamespace(), nodeName = config.nodeDeployment?.nodeName } = config.intentJournal ?? {};
  const namespaces = [own.namespace, podNamespace];
  const lockNames = [own.lease, ...(nodeName === undefined ? [] : [journalLock(own.lease, nodeName)])];
  return warnOfJournals({
    client,
    own,
    others: namespaces.flatMap((namespace) => lockNames.map((lockName) => ({ namespace, lockName }))),
    isKnownProvisioner: isProvisionerOf(driver.name),
    clock,
    logger,
  });
}
