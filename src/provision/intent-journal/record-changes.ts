import { inSlices } from '../../base/event-loop.ts';
import { ForeignWriters } from './foreign-writers.ts';
import { ForeignIntentError, type JournalListener } from './intent-journal.ts';
import { isLeftAlonePhase } from './intent-record.ts';
import { type JournalEntry, recordOf, withHead } from './journal-entry.ts';
import type { ClusterJournalOptions } from './journal-options.ts';
import { mergeShard } from './merge-shard.ts';
import { PlanReader } from './plan-text.ts';
import type { Shard, ShardWrite } from './shard.ts';
import type { ShardContents } from './shard-contents.ts';
import { headerKey, type ShardHeader, shortened } from './shard-header.ts';
import type { ShardSet } from './shard-set.ts';
import { annotationPrefix, damagedHeaderKey, type ShardStorage } from './shard-storage.ts';

export interface RecordChangesOptions {
  journal: ClusterJournalOptions;
  storage: ShardStorage;
  shards: ShardSet;
  /** This process. */
  me: string;
  /** Whether this process has a newer record of the claim, which was not written yet. */
  isSuperseded: (uid: string) => boolean;
  /** Another process was first with a record of the claim: one of ours that has no shard yet is dropped. */
  onOvertaken: (uid: string) => void;
  /** Another process writes although this one holds the lease. @returns what to throw. */
  onFenced: (writer: string) => Error;
}

/** What others do to the records: processes beside this one, earlier ones, operators. */
export class RecordChanges {
  /** Other processes, as far as they were seen. */
  readonly others = new ForeignWriters();
  readonly #options: RecordChangesOptions;
  /** Foreign records that the listener knows. */
  readonly #known = new Set<string>();
  readonly #reported = new Set<string>();
  readonly #plans = new PlanReader();
  #isDraining = false;
  #listener: JournalListener | undefined;
  /** Calls of the listener that wait until everything is read. */
  #held: ((listener: JournalListener) => void)[] = [];

  constructor(options: RecordChangesOptions) {
    this.#options = options;
  }

  /** From now on the listener is called, at first for what was found so far: that may be much. */
  async listen(listener: JournalListener): Promise<void> {
    while (this.#held.length > 0) await inSlices(this.#held.splice(0), (call) => call(listener));
    this.#listener = listener;
  }

  /** A shard was read, and is not as it was known. @throws when nothing may be written any more. */
  onChanged(shard: Shard, contents: ShardContents): void {
    const { me, shards, onFenced } = this.#options;
    const { clock, exclusive } = this.#options.journal;
    const nowMs = clock.monotonicMs();
    const { header } = contents;
    const isRewound = shard.isRewound(contents, me);
    if (isRewound) this.#onRewound(shard);
    const other = otherWriter(contents, me);
    if (exclusive && shard.isOwn && other !== undefined) throw onFenced(other);
    const merged = mergeShard(shard, contents, { me, nowMs, isRewound });
    this.#reportDamage(shard, contents);
    this.#reportUnreadable(shard, contents);
    this.#reportForeign(shard, contents);
    for (const writer of merged.writers) this.others.seen(writer, nowMs);
    if (shards.isRoot(shard) && header !== undefined) this.#onRoot(shard, header, nowMs);
    for (const uid of merged.lost) for (const waiter of shard.takeWaiters(uid)) waiter.reject(foreignIntent(uid));
    for (const uid of merged.gone) {
      this.#forget(shard, uid);
      this.#notify((listener) => listener.onGone(uid));
    }
    if ((exclusive && !shard.isOwn) || contents.damage !== undefined) shard.touch(nowMs, { urgent: true });
    for (const entry of merged.foreign) this.#onForeign(shard, entry);
    this.#discard(shard);
    this.#followDrain();
  }

  /** A shard was written. */
  onStored(shard: Shard, { changes, adopted, discarded }: ShardWrite): void {
    for (const [uid, entry] of changes) if (entry === undefined && !shard.wanted.has(uid)) this.#forget(shard, uid);
    for (const uid of discarded) if (!shard.wanted.has(uid)) this.#notify((listener) => listener.onDiscarded(uid));
    for (const uid of adopted) {
      const entry = changes.get(uid);
      if (entry !== undefined && !this.#options.isSuperseded(uid)) this.#notifyFound(entry, 'own');
    }
    for (const each of this.#options.shards.byNumber.values()) this.#discard(each);
  }

  /** Takes over the records of processes that have changed nothing since then, in monotonic milliseconds. */
  adoptSilent(sinceMs: number): void {
    const { shards, me } = this.#options;
    for (const shard of shards.byNumber.values()) {
      for (const entry of shard.wanted.values()) {
        if (entry.writer === me || !this.others.isSilent(entry.writer, sinceMs)) continue;
        if ((shards.home.get(entry.uid) ?? shard) !== shard) continue;
        shards.home.set(entry.uid, shard);
        this.#adopt(shard, entry);
      }
    }
  }

  #onRewound({ index }: Shard): void {
    this.#options.journal.logger.warn(
      { lease: this.#options.storage.leaseOf(index) },
      'The intent journal has gone back to an earlier state, such as that of a restored etcd, and is written again',
    );
    this.#notify((listener) => listener.onRewound());
  }

  #onRoot(root: Shard, { shards: count = 0, renewals = {} }: ShardHeader, nowMs: number): void {
    const { shards } = this.#options;
    const isSole = this.#options.journal.exclusive && root.isOwn; // nobody else enters numbers
    this.others.observe(renewals, nowMs);
    if (this.#listener !== undefined && (count < shards.count || (isSole && count > shards.count)))
      root.touch(nowMs, { urgent: true });
    if (!isSole) shards.count = Math.max(shards.count, count);
  }

  #onForeign(shard: Shard, entry: JournalEntry): void {
    const { shards } = this.#options;
    const { uid } = entry;
    if ((shards.home.get(uid) ?? shard) !== shard) return; // ours is elsewhere; this one is looked at when that is closed
    shards.home.set(uid, shard);
    const { exclusive, isFormer } = this.#options.journal;
    if (exclusive || isFormer?.(entry.writer) === true) this.#adopt(shard, entry);
    else if (!this.#known.has(uid)) {
      this.#known.add(uid);
      this.#options.onOvertaken(uid);
      this.#notifyFound(entry, 'foreign');
    }
  }

  /** Writes a record as our own; the listener is called when that is done. */
  #adopt(shard: Shard, entry: JournalEntry): void {
    const { clock } = this.#options.journal;
    const renewedAt = new Date(clock.wallMs()).toISOString();
    shard.want(entry.uid, withHead(entry, { writer: this.#options.me, renewedAt }), clock.monotonicMs());
    shard.adopting.add(entry.uid);
    shard.urgent = true;
  }

  #forget(shard: Shard, uid: string): void {
    const { home } = this.#options.shards;
    if (home.get(uid) === shard) home.delete(uid);
    this.#known.delete(uid);
  }

  #notifyFound(entry: JournalEntry, owner: 'own' | 'foreign'): void {
    const { reportOnly } = entry;
    this.#notify((listener) =>
      listener.onFound({ record: recordOf(entry, this.#plans), owner, ...(reportOnly !== '' && { reportOnly }) }),
    );
  }

  #notify(call: (listener: JournalListener) => void): void {
    if (this.#listener === undefined) this.#held.push(call);
    else call(this.#listener);
  }

  #followDrain(): void {
    const { isDraining } = this.#options.shards;
    if (isDraining === this.#isDraining) return;
    this.#isDraining = isDraining;
    const { logger } = this.#options.journal;
    if (isDraining) {
      logger.warn({}, 'The intent journal is being drained: no new volume is begun');
      return;
    }
    logger.info({}, 'The intent journal is not drained any more: new volumes are begun again');
    this.#notify((listener) => listener.onDrainEnded());
  }

  /** Removes what an operator wants to have removed, as far as that is safe. */
  #discard(shard: Shard): void {
    if (shard.discard === '') return;
    const { shards, storage, me } = this.#options;
    const { clock, logger } = this.#options.journal;
    const nowMs = clock.monotonicMs();
    const later: string[] = [];
    for (const uid of shard.discard.split(',').map((each) => each.trim())) {
      const home = shards.home.get(uid);
      const entry = home?.wanted.get(uid);
      const isOurs = entry?.writer === me && home?.adopting.has(uid) === false; // else it is handed over first
      if (shard.foreign.has(uid) || (home !== undefined && entry !== undefined && !isOurs)) later.push(uid);
      else if (home !== undefined && entry !== undefined && isReported(entry)) {
        home.want(uid, undefined, nowMs);
        home.discarding.add(uid);
        home.urgent = true;
      } else if (uid !== '') {
        logger.warn(
          { shard: storage.nameOf(shard.index), uid },
          'The record is not discarded: only those that are stuck, unproved or only reported can be',
        );
      }
    }
    if (later.join(',') === shard.discard) return;
    shard.discard = later.join(',');
    shard.touch(nowMs, { urgent: true });
  }

  /** Once for each provisioner. */
  #reportForeign(shard: Shard, { foreign }: ShardContents): void {
    const { logger, metrics } = this.#options.journal;
    for (const { provisioner } of foreign.values()) {
      if (this.#reported.has(provisioner)) continue;
      this.#reported.add(provisioner);
      metrics?.reported('other-provisioner');
      logger.warn(
        { shard: this.#options.storage.nameOf(shard.index), provisioner },
        'The intent journal also holds records of another provisioner, which are left alone',
      );
    }
  }

  /** Once for each text. */
  #reportDamage({ index }: Shard, { header, damage }: ShardContents): void {
    const { logger, metrics } = this.#options.journal;
    const { storage } = this.#options;
    if (damage === undefined || this.#reported.has(`${index} ${damage.text}`)) return;
    this.#reported.add(`${index} ${damage.text}`);
    metrics?.reported('unreadable');
    logger.error(
      {
        lease: storage.leaseOf(index),
        annotation: annotationPrefix + headerKey,
        value: shortened(damage.text),
        problem: damage.problem,
        keptAs: damagedHeaderKey,
        reportOnly: header === undefined,
      },
      'The header of a Lease of the intent journal is damaged: it is written again, and its records stay',
    );
  }

  #reportUnreadable(shard: Shard, { unreadable }: ShardContents): void {
    const { logger, metrics } = this.#options.journal;
    const name = this.#options.storage.nameOf(shard.index);
    for (const key of unreadable.keys()) {
      if (this.#reported.has(`${name} ${key}`)) continue;
      this.#reported.add(`${name} ${key}`);
      metrics?.reported('unreadable');
      logger.error({ shard: name, key }, 'An entry of the intent journal cannot be read and is left alone');
    }
  }
}

/** Another process that has written the shard; where its header is lost: that has a record in it. */
function otherWriter({ header, records }: ShardContents, me: string): string | undefined {
  const writers = header === undefined ? [...records.values()].map(({ writer }) => writer) : [header.writer];
  return writers.find((writer) => writer !== me);
}

/** Whether an operator has to decide about it. */
export function isReported({ phase, reportOnly }: JournalEntry): boolean {
  return isLeftAlonePhase(phase) || reportOnly !== '';
}

export function foreignIntent(uid: string): ForeignIntentError {
  return new ForeignIntentError(`another process works on the volume of the claim ${uid}`);
}
