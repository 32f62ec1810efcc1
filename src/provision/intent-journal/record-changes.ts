/** Merges what others have changed in a shard since this process last read or wrote it. */
import { inSlices } from '../../base/event-loop.ts';
import { foreignIntent, type FoundIntent, type JournalListener } from './intent-journal.ts';
import { type JournalEntry, recordOf, withHead } from './journal-entry.ts';
import type { JournalParts } from './journal-parts.ts';
import { PlanReader } from './plan-text.ts';
import {
  headerKey,
  journalFormat,
  type OtherFormat,
  type ShardContents,
  type ShardHeader,
  shortened,
} from './shard-contents.ts';
import { annotationPrefix, damagedHeaderKey } from './shard-storage.ts';
import type { Shard, ShardWrite } from './shard.ts';

/** What others do to the records: processes beside this one, earlier ones, operators. */
export class RecordChanges {
  readonly #options: JournalParts;
  /** Foreign records that the listener knows. */
  readonly #known = new Set<string>();
  readonly #plans = new PlanReader();
  readonly #reported = new Set<string>();
  #isDraining = false;
  #listener: JournalListener | undefined;
  /** Calls of the listener that wait until everything is read. */
  #held: ((listener: JournalListener) => void)[] = [];

  constructor(options: JournalParts) {
    this.#options = options;
  }

  /** Calls the listener from now on, first for what was found so far: in slices, as that may be much. */
  async listen(listener: JournalListener): Promise<void> {
    while (this.#held.length > 0) await inSlices(this.#held.splice(0), (call) => call(listener));
    this.#listener = listener;
  }

  /** A shard in another format was read. */
  onOtherFormat(number: number, { otherFormat }: OtherFormat): void {
    const { journal, storage } = this.#options;
    journal.metrics.reported('unreadable');
    journal.logger.error(
      { lease: storage.leaseOf(number), format: otherFormat, ownFormat: journalFormat },
      'A Lease of the intent journal is in the format of another version and left alone: drain it with that version, and delete it',
    );
  }

  /** A shard was read and differs from what was known. @throws when nothing may be written any more. */
  onChanged(shard: Shard, contents: ShardContents): void {
    const { me, state, status, heartbeats } = this.#options;
    const { clock, exclusive } = this.#options.journal;
    const nowMs = clock.monotonicMs();
    const { header } = contents;
    const isRewound = shard.isRewound(contents, me);
    if (isRewound) this.#onRewound(shard);
    const other = otherWriter(contents, me);
    if (exclusive && shard.isOwn && other !== undefined) throw status.fence(other);
    const merged = mergeShard(shard, contents, { me, nowMs, isRewound });
    this.#reportDamage(shard, contents);
    this.#reportUnreadable(shard, contents);
    this.#reportOtherProvisioners(shard, contents);
    for (const writer of merged.writers) heartbeats.seen(writer, nowMs);
    if (state.isRoot(shard) && header !== undefined) this.#onRoot(shard, header, nowMs);
    for (const uid of merged.lost) for (const waiter of shard.takeWaiters(uid)) waiter.reject(foreignIntent(uid));
    for (const uid of merged.gone) {
      this.#forget(shard, uid);
      this.#notify((listener) => listener.onGone(uid));
    }
    if ((exclusive && !shard.isOwn) || contents.damage !== undefined) shard.touch(nowMs);
    for (const entry of merged.foreign) this.#onForeign(shard, entry);
    this.#discard(shard);
    this.#followDrain();
  }

  /** A shard was written. */
  onStored(shard: Shard, { changes, adopted, discarded }: ShardWrite): void {
    const { state } = this.#options;
    for (const [uid, entry] of changes) if (entry === undefined && !shard.wanted.has(uid)) this.#forget(shard, uid);
    for (const uid of discarded) if (!shard.wanted.has(uid)) this.#notify((listener) => listener.onDiscarded(uid));
    for (const uid of adopted) {
      const entry = changes.get(uid);
      if (entry !== undefined && !state.unplaced.has(uid)) this.#notifyFound(entry, 'own');
    }
    for (const each of state.byNumber.values()) this.#discard(each);
  }

  /** Takes over the records of processes that have changed nothing since then, in monotonic milliseconds. */
  adoptSilent(sinceMs: number): void {
    const { state, me, heartbeats } = this.#options;
    for (const shard of state.byNumber.values()) {
      for (const entry of shard.wanted.values()) {
        if (entry.writer === me || !heartbeats.isSilent(entry.writer, sinceMs)) continue;
        if (state.tryHome(shard, entry.uid)) this.#adopt(shard, entry);
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
    const { state, heartbeats, journal } = this.#options;
    const isSole = journal.exclusive && root.isOwn; // nobody else enters numbers
    heartbeats.observe(renewals, nowMs);
    if (this.#listener !== undefined && (count < state.count || (isSole && count > state.count))) root.touch(nowMs);
    if (!isSole) state.countAtLeast(count);
  }

  /**
   * A record of another process was read, or has changed. With a lease nobody else works on it: it is adopted, and found as our own once that
   * is written. Without, it is found as foreign, and adopted once its process is silent.
   */
  #onForeign(shard: Shard, entry: JournalEntry): void {
    const { uid } = entry;
    if (!this.#options.state.tryHome(shard, uid)) return; // another shard has a record of the claim; this one counts once that is closed
    const { exclusive, isFormer } = this.#options.journal;
    if (exclusive || isFormer(entry.writer)) this.#adopt(shard, entry);
    else if (!this.#known.has(uid)) {
      this.#known.add(uid);
      this.#dropOvertaken(uid);
      this.#notifyFound(entry, 'foreign');
    }
  }

  /** Another process was first with a record of the claim: one of ours that is waited for and has no shard yet is dropped. */
  #dropOvertaken(uid: string): void {
    const { state } = this.#options;
    if ((state.unplaced.get(uid)?.waiters.length ?? 0) === 0) return; // one that is worked on without protection stays
    for (const waiter of state.dropUnplaced(uid)) waiter.reject(foreignIntent(uid));
  }

  /** Writes a record as our own; the listener is called when that is done. */
  #adopt(shard: Shard, entry: JournalEntry): void {
    const { clock } = this.#options.journal;
    const renewedAt = new Date(clock.wallMs()).toISOString();
    shard.adopt(withHead(entry, { writer: this.#options.me, renewedAt }), clock.monotonicMs());
  }

  #forget(shard: Shard, uid: string): void {
    this.#options.state.forget(shard, uid);
    this.#known.delete(uid);
  }

  #notifyFound(entry: JournalEntry, owner: FoundIntent['owner']): void {
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
    const { isDraining } = this.#options.state;
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
    const { state, storage, me, journal } = this.#options;
    const nowMs = journal.clock.monotonicMs();
    const later: string[] = [];
    for (const uid of shard.discard.split(',').map((each) => each.trim())) {
      const home = state.home.get(uid);
      const entry = home?.wanted.get(uid);
      const isOurs = entry?.writer === me && home?.adopting.has(uid) === false; // else it is taken over first
      if (shard.ofOtherProvisioners.has(uid) || (home !== undefined && entry !== undefined && !isOurs)) later.push(uid);
      else if (home !== undefined && entry !== undefined && isStuck(entry)) {
        home.discardRecord(uid, nowMs);
      } else if (uid !== '') {
        journal.logger.warn(
          { shard: storage.nameOf(shard.index), uid },
          'The record is not discarded: only one that is stuck can be',
        );
      }
    }
    if (later.join(',') !== shard.discard) shard.setDiscard(later.join(','), nowMs);
  }

  /** Once for each provisioner. */
  #reportOtherProvisioners(shard: Shard, { ofOtherProvisioners }: ShardContents): void {
    const { logger, metrics } = this.#options.journal;
    for (const { provisioner } of ofOtherProvisioners.values()) {
      if (this.#reported.has(provisioner)) continue;
      this.#reported.add(provisioner);
      metrics.reported('other-provisioner');
      logger.warn(
        { shard: this.#options.storage.nameOf(shard.index), provisioner },
        'The intent journal also holds records of another provisioner, which are left alone',
      );
    }
  }

  /** Once for each text. */
  #reportDamage({ index }: Shard, { header, damage }: ShardContents): void {
    const { logger, metrics } = this.#options.journal;
    if (damage === undefined || this.#reported.has(`${index} ${damage.text}`)) return;
    this.#reported.add(`${index} ${damage.text}`);
    metrics.reported('unreadable');
    logger.error(
      {
        lease: this.#options.storage.leaseOf(index),
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
      metrics.reported('unreadable');
      logger.error({ shard: name, key }, 'An entry of the intent journal cannot be read and is left alone');
    }
  }
}

/** Another process that has written the shard or, where its header is lost, has a record in it. */
function otherWriter({ header, records }: ShardContents, me: string): string | undefined {
  const writers = header === undefined ? [...records.values()].map(({ writer }) => writer) : [header.writer];
  return writers.find((writer) => writer !== me);
}

/** Whether an operator has to decide about it. */
export function isStuck({ phase, reportOnly }: JournalEntry): boolean {
  return phase === 'stuck' || reportOnly !== '';
}

/** What a merge has found, by UID of the claim. */
interface Merged {
  /** Records of other processes that were not known, or have changed. */
  foreign: JournalEntry[];
  /** Records that others have closed, or taken over from this process. */
  gone: string[];
  /** Records that this process wanted to write, and that another one works on now. */
  lost: string[];
  /** Processes that were seen to change something. */
  writers: Set<string>;
}

/**
 * Updates a shard to what was read. What this process has changed itself is still to be written.
 *
 * @param options.isRewound - it is older than what was known: our own records that it lacks were not closed by others.
 */
function mergeShard(
  shard: Shard,
  read: ShardContents,
  { me, nowMs, isRewound }: { me: string; nowMs: number; isRewound: boolean },
): Merged {
  const merged: Merged = { foreign: [], gone: [], lost: [], writers: new Set() };
  const { header, records } = read;
  const lastWriter = header?.writer ?? '';
  if (lastWriter !== me && lastWriter !== '' && header?.sequence !== shard.header?.sequence)
    merged.writers.add(lastWriter);
  shard.adoptObject(read);
  for (const [uid, theirs] of records) mergeRecord(shard, uid, theirs, { merged, me, nowMs });
  for (const [uid, base] of shard.stored) {
    if (records.has(uid)) continue;
    shard.setStored(uid, undefined);
    const isOurs = base.writer === me;
    const wanted = shard.wanted.get(uid);
    if (header === undefined || header.uid === '') {
      if (wanted !== undefined) shard.want(uid, wanted, nowMs); // a new object, or an edited one: nobody has closed it
      continue;
    }
    if (!isOurs) merged.writers.add(base.writer);
    if (wanted === undefined || (shard.changed.has(uid) && !shard.adopting.has(uid) && !isOurs)) continue;
    if (isOurs && (lastWriter === me || isRewound)) {
      shard.want(uid, wanted, nowMs); // somebody edited the object, or restored an older one
      continue;
    }
    if (isOurs && shard.changed.has(uid)) merged.lost.push(uid);
    shard.adoptStored(uid, undefined);
    merged.gone.push(uid);
  }
  return merged;
}

function mergeRecord(
  shard: Shard,
  uid: string,
  theirs: JournalEntry,
  { merged, me, nowMs }: { merged: Merged; me: string; nowMs: number },
): void {
  const base = shard.stored.get(uid);
  if (theirs.text === base?.text) return;
  shard.setStored(uid, theirs);
  const mine = shard.wanted.get(uid);
  if (theirs.writer === me) {
    if (!shard.changed.has(uid) && mine?.text !== theirs.text) shard.want(uid, mine, nowMs); // edited, or our response was lost
    return;
  }
  merged.writers.add(theirs.writer);
  const isPut = shard.changed.has(uid) && mine !== undefined && !shard.adopting.has(uid);
  // only what was known may be taken over: a record of our own begun meanwhile stands for another volume, or another plan
  if (base !== undefined && base.writer !== me && isPut && theirs.phase !== 'delete') return;
  if (isPut) merged.lost.push(uid);
  if (base?.writer === me) merged.gone.push(uid);
  if (mine === undefined && shard.changed.has(uid) && base?.writer !== me) return;
  shard.adoptStored(uid, theirs);
  merged.foreign.push(theirs);
}
