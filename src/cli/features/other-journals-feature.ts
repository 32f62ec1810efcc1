import { isProvisionerOf } from '../../csi/migration/in-tree-plugins.ts';
import { journalLock } from '../../run/journal-names.ts';
import { OtherJournals } from '../../run/other-journals.ts';
import { ownNamespace } from '../../run/own-namespace.ts';
import type { FeatureOptions } from '../run-phase-options.ts';
import { journalObjects } from '../sidecar-journal.ts';

/**
 * Warns of records where the journal was before `--leader-election-namespace` or `--node-deployment` was changed. Undefined
 * without journal.
 */
export function otherJournalsFeature(options: FeatureOptions): OtherJournals | undefined {
  const { config, client, driver, clock, logger } = options;
  const own = journalObjects(options);
  if (own === undefined) return undefined;
  const { podNamespace = ownNamespace(), nodeName = config.nodeDeployment?.nodeName } = config.intentJournal ?? {};
  const namespaces = [own.namespace, podNamespace];
  const lockNames = [own.lease, ...(nodeName === undefined ? [] : [journalLock(own.lease, nodeName)])];
  return new OtherJournals({
    client,
    own,
    others: namespaces.flatMap((namespace) => lockNames.map((lockName) => ({ namespace, lockName }))),
    isKnownProvisioner: isProvisionerOf(driver.name),
    clock,
    logger,
  });
}
