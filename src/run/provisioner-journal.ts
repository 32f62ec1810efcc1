/** The intent journal of a program on the library, and journals under the names that a process may have used before its settings were changed. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { type Logger, silentLogger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { clusterJournal } from '../provision/intent-journal/cluster-journal.ts';
import { journalMetrics } from '../provision/intent-journal/journal-metrics.ts';
import type { ClusterJournalOptions } from '../provision/intent-journal/journal-parts.ts';
import { readJournal } from '../provision/intent-journal/read-journal.ts';
import { ShardStorage } from '../provision/intent-journal/shard-storage.ts';
import type { ProvisionControllerOptions } from '../provision/provision-controller-options.ts';
import type { Provisioner } from '../provision/provisioner.ts';
import { isRecoverable, type Recoverable } from '../provision/recoverable.ts';
import type { ElectionSettings } from './election.ts';
import type { Feature } from './feature.ts';
import { journalLock, leaseName, ownNamespace } from './lock-name.ts';

/** Where a journal is. */
export interface JournalAddress {
  readonly namespace: string;
  /** The Leases are `<lock name>-journal-<n>`. */
  readonly lockName: string;
}

interface JournalSearch {
  client: KubeClient;
  /** That of this process. */
  own: JournalAddress;
  /** Where else it may have been. */
  others: readonly JournalAddress[];
  /** Whether the records of a provisioner are ours. */
  isKnownProvisioner: (name: string) => boolean;
  clock: Clock;
  logger: Logger;
}

/**
 * Warns once, at the start, of other journals that hold records. Their records are never adopted: another deployment may work on
 * them, and they belong to its backend.
 */
export function warnOfJournals({ own, others, ...options }: JournalSearch): Feature {
  const places = new Map(others.map((place) => [addressText(place), place]));
  places.delete(addressText(own));
  return {
    async run({ stop }) {
      for (const [name, place] of places) {
        if (stop.aborted) return;
        await warnOf(place, options).catch((error: unknown) => {
          // without the permission to read there nothing is reported: it need not be granted for this
          options.logger.debug({ err: error, place: name }, 'No other intent journal could be looked for');
        });
      }
    },
  };
}

function addressText({ namespace, lockName }: JournalAddress): string {
  return `${namespace}/${lockName}`;
}

async function warnOf(
  { namespace, lockName }: JournalAddress,
  { client, isKnownProvisioner, clock, logger }: Omit<JournalSearch, 'own' | 'others'>,
): Promise<void> {
  const address = { client, namespace, lockName };
  const storage = new ShardStorage(address);
  if ((await storage.read(0)) === undefined) return; // most often it is not there, which one request shows
  const journal = await readJournal({ ...address, isKnownProvisioner, clock });
  const records = journal.records.length + journal.unreadable.length;
  if (records === 0) return;
  logger.warn(
    { lease: storage.leaseOf(0), records },
    'The intent journal of other settings holds records of volumes, which this process does not act on',
  );
}

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
interface JournalParts {
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
): Feature | undefined {
  const { provisionerName, intentJournal = 'lease', clock, logger } = settings;
  if (intentJournal === 'off' || !isRecoverable(provisioner)) return undefined;
  const [own, usual] = [journalAddress(settings), journalAddress({ provisionerName })];
  return warnOfJournals({
    client,
    own,
    others: [usual, { ...own, namespace: usual.namespace }, { ...own, lockName: usual.lockName }],
    isKnownProvisioner,
    clock,
    logger,
  });
}
