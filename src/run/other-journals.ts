/** Journals under the names that this process may have used before its settings were changed. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { readJournal } from '../provision/intent-journal/read-journal.ts';
import { ShardStorage } from '../provision/intent-journal/shard-storage.ts';
import type { RunOptions } from '../provision/run-options.ts';
import type { Feature } from './feature.ts';

/** Where a journal is. */
export interface JournalAddress {
  readonly namespace: string;
  /** The Leases are `<lock name>-journal-<n>`. */
  readonly lockName: string;
}

export interface OtherJournalsOptions {
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

/** Pause between two checks, in milliseconds. */
const betweenMs = 3_600_000;

/**
 * Warns of other journals that hold records, at once and then every hour until they are empty. Their records are never adopted:
 * another deployment may work on them, and they belong to its backend.
 */
export class OtherJournals implements Feature {
  readonly #options: OtherJournalsOptions;
  /** Addresses whose journal was not found empty yet, by name. */
  readonly #places = new Map<string, JournalAddress>();

  constructor(options: OtherJournalsOptions) {
    this.#options = options;
    for (const place of options.others) this.#add(place);
  }

  /** Resolves when `stop` aborts, or nothing is left to check. Never rejects. */
  async run({ stop: signal }: RunOptions): Promise<void> {
    while (!signal.aborted) {
      await this.#check(signal);
      if (this.#places.size === 0) return;
      await this.#options.clock.sleep(betweenMs, { signal }).catch(() => undefined);
    }
  }

  async #check(signal: AbortSignal): Promise<void> {
    for (const [name, place] of this.#places) await this.#quietly(name, () => this.#checkPlace(name, place, signal));
  }

  async #checkPlace(name: string, { namespace, lockName }: JournalAddress, signal: AbortSignal): Promise<void> {
    const { client, isKnownProvisioner, clock, logger } = this.#options;
    const address = { client, namespace, lockName };
    const storage = new ShardStorage(address);
    const isThere = (await storage.read(0)) !== undefined; // most often it is not, which one request shows
    const journal = isThere ? await readJournal({ ...address, isKnownProvisioner, clock }) : undefined;
    const records = journal === undefined ? 0 : journal.records.length + journal.unreadable.length;
    if (records === 0) {
      this.#places.delete(name);
      return;
    }
    if (signal.aborted) return;
    logger.warn(
      { lease: storage.leaseOf(0), records },
      'The intent journal of other settings holds records of volumes, which this process does not act on',
    );
  }

  #add(place: JournalAddress): void {
    const { own } = this.#options;
    if (place.namespace === own.namespace && place.lockName === own.lockName) return;
    this.#places.set(`${place.namespace}/${place.lockName}`, place);
  }

  /** Without the permission to read there nothing is reported: it need not be granted for this. */
  async #quietly(place: string, check: () => Promise<void>): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.#options.logger.debug({ err: error, place }, 'No other intent journal could be looked for');
    }
  }
}
