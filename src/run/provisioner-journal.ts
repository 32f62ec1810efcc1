/** The intent journal of a program on the library. */
import { randomUUID } from 'node:crypto';
import { type Clock } from '../base/clock.ts';
import { type Logger, silentLogger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { clusterJournal } from '../provision/intent-journal/cluster-journal.ts';
import type { ClusterJournalOptions } from '../provision/intent-journal/journal-parts.ts';
import { journalMetrics } from '../provision/intent-journal/journal-metrics.ts';
import type { ProvisionControllerOptions } from '../provision/provision-controller-options.ts';
import type { Provisioner } from '../provision/provisioner.ts';
import { isRecoverable, type Recoverable } from '../provision/recoverable.ts';
import type { ElectionSettings } from './election.ts';
import { journalLock } from './journal-names.ts';
import { leaseName } from './lease-name.ts';
import { type JournalAddress, OtherJournals } from './other-journals.ts';
import { ownNamespace } from './own-namespace.ts';

/** What `provisionerJournal` needs of `RunProvisionerOptions`. */
export interface JournalSettings {
  provisionerName: string;
  leaderElection?: boolean | ElectionSettings;
  intentJournal?: 'lease' | 'off';
  soleInstance?: string | undefined;
  clock: Clock;
  logger: Logger;
}

/** What a journal needs of its process. */
export interface JournalParts {
  provisioner: Provisioner | Recoverable<object>;
  isKnownProvisioner: (name: string) => boolean;
  client: KubeClient;
}

/** The controller's options for the journal; none where it is off, or for a provisioner that is not `Recoverable`. */
export function provisionerJournal(
  { provisionerName, leaderElection = false, intentJournal = 'lease', soleInstance, clock, logger }: JournalSettings,
  { provisioner, isKnownProvisioner, client, registry }: JournalParts & { registry: MetricRegistry },
): Pick<ProvisionControllerOptions, 'intentJournal' | 'journalMetrics'> {
  if (intentJournal === 'off' || !isRecoverable(provisioner)) return {};
  const metrics = journalMetrics(registry, clock);
  const journal = clusterJournal({
    client,
    ...journalAddress({ provisionerName, leaderElection }),
    isKnownProvisioner,
    exclusive: leaderElection !== false,
    ...(soleInstance !== undefined && writerOf(soleInstance)),
    metrics,
    clock,
    logger,
  });
  return { intentJournal: journal, journalMetrics: metrics };
}

/** Only one process with this name runs at a time: a record whose writer has the same name is that of an earlier process. */
function writerOf(soleInstance: string): Required<Pick<ClusterJournalOptions, 'writer' | 'isFormer'>> {
  const prefix = `${soleInstance}_`;
  return { writer: prefix + randomUUID(), isFormer: (writer) => writer.startsWith(prefix) };
}

/** Where the journal is. */
function journalAddress({
  provisionerName,
  leaderElection = false,
}: Pick<JournalSettings, 'provisionerName' | 'leaderElection'>): JournalAddress {
  const settings = typeof leaderElection === 'object' ? leaderElection : {};
  const { namespace = '', lockName = leaseName(provisionerName, silentLogger) } = settings;
  return { namespace: namespace === '' ? ownNamespace() : namespace, lockName: journalLock(lockName) };
}

/** Warns of records where the journal is with other settings of the election. Undefined where there is no journal. */
export function otherJournals(
  settings: JournalSettings,
  { provisioner, isKnownProvisioner, client }: JournalParts,
): OtherJournals | undefined {
  const { provisionerName, intentJournal = 'lease', clock, logger } = settings;
  if (intentJournal === 'off' || !isRecoverable(provisioner)) return undefined;
  const [own, usual] = [journalAddress(settings), journalAddress({ provisionerName })];
  return new OtherJournals({
    client,
    own,
    others: [usual, { ...own, namespace: usual.namespace }, { ...own, lockName: usual.lockName }],
    isKnownProvisioner,
    clock,
    logger,
  });
}
