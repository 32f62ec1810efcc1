/** A journal that nobody works on any more. */
import type { Clock } from '../../base/clock.ts';
import { NotFoundError } from '../../kube/client/api-error.ts';
import { type Lease, leases } from '../../kube/election/lease-record.ts';
import { type JournalLocation, type ReadJournal, readJournal, type ReadJournalOptions } from './read-journal.ts';
import { ShardStorage } from './shard-storage.ts';

/** A process works on the journal, or may do so. */
export class JournalInUseError extends Error {
  override readonly name = 'JournalInUseError';
}

/**
 * Reads a journal of which nobody holds the Lease, and which nobody writes for some time: a process without leader election shows
 * every ten seconds that it is alive while it has open records.
 *
 * @throws {JournalInUseError} when somebody does, {ApiError} and {TransportError}, and the signal's reason.
 */
export async function readSilentJournal(
  options: Omit<ReadJournalOptions, 'clock'> & { clock: Clock },
  { silenceMs, signal }: { silenceMs: number; signal: AbortSignal },
): Promise<ReadJournal> {
  const { clock } = options;
  await checkLease(options, clock);
  const { shards } = await readJournal(options);
  const before = await versions(options, shards);
  await clock.sleep(silenceMs, { signal });
  await checkLease(options, clock);
  const journal = await readJournal(options);
  if ((await versions(options, journal.shards)) === before) return journal;
  throw new JournalInUseError(
    `${options.namespace}/${options.lockName} is still written: end the sidecar that works on it first`,
  );
}

async function versions(location: JournalLocation, shards: readonly number[]): Promise<string> {
  const storage = new ShardStorage(location);
  const read: string[] = [];
  for (const shard of [...shards].sort((a, b) => a - b)) {
    const object = await storage.read(shard);
    read.push(`${shard} ${object?.uid ?? ''} ${object?.rest.metadata.resourceVersion ?? ''}`);
  }
  return read.join('\n');
}

/** @throws {JournalInUseError} when the Lease of the leader election is held. */
async function checkLease(
  { client, namespace, lockName }: JournalLocation,
  clock: Pick<Clock, 'wallMs'>,
): Promise<void> {
  let lease: Lease;
  try {
    lease = await client.get<Lease>(leases, { namespace, name: lockName });
  } catch (error) {
    if (error instanceof NotFoundError) return;
    throw error;
  }
  const { holderIdentity, renewTime, leaseDurationSeconds } = lease.spec ?? {};
  const holder = holderIdentity ?? '';
  const endMs = Date.parse(renewTime ?? '') + (leaseDurationSeconds ?? 0) * 1000;
  if (holder === '' || endMs < clock.wallMs()) return;
  throw new JournalInUseError(`${holder} holds the Lease ${namespace}/${lockName}: end that sidecar first`);
}
