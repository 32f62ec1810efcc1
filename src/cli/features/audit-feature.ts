import os from 'node:os';
import { addDriverFacts } from '../../audit/driver-facts.ts';
import { cachedLook } from '../../audit/cached-look.ts';
import { RecurringAudit } from '../../audit/recurring-audit.ts';
import { silentProgress } from '../../base/progress.ts';
import type { Feature } from '../../run/feature.ts';
import { ownNamespace } from '../../run/lock-name.ts';
import { commandFor } from '../audit-commands.ts';
import { homeIn } from '../audited-driver.ts';
import type { FeatureOptions } from '../run-phase-options.ts';
import { journalObjects } from '../sidecar-journal.ts';

/** The audit of `--audit-interval`: of the leader, or in node deployment of each node. Undefined where it is off. */
export function auditFeature(options: FeatureOptions): Feature | undefined {
  const { config, driver, client, transport, informers, metrics, random = Math.random, clock, logger } = options;
  if (config.auditIntervalMs === null || metrics.audit === undefined) return undefined;
  const plugin = pluginFlags(options);
  const audit = new RecurringAudit({
    look: (signal) =>
      cachedLook({
        driver,
        transport,
        client,
        journal: journalObjects(options),
        homeOf: homeIn(config, driver),
        volumes: informers.volumes,
        clock,
        logger,
        signal,
      }),
    addFacts: (findings, signal) => addDriverFacts(findings, { driver, progress: silentProgress, signal }),
    commandFor: (finding, found) => commandFor(finding, found, { program: 'csi-provisioner', config, plugin }),
    intervalMs: config.auditIntervalMs,
    metrics: metrics.audit,
    random,
    clock,
    logger,
  });
  options.status?.audits(audit.state);
  return { run: ({ stop, abort }) => audit.run(AbortSignal.any([stop, abort])) };
}

/** Whoever reads the status page has no shell in this Pod: the plugin finds it by the Lease, or by its name. */
function pluginFlags({ config, driver }: FeatureOptions): string[] {
  if (config.leaderElection !== null && config.nodeDeployment === null) return [`--driver=${driver.name}`];
  return [`--pod=${config.intentJournal?.namespace || ownNamespace()}/${os.hostname()}`];
}
