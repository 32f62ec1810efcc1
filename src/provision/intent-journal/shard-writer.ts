import { type Moment, momentOf } from '../../base/permit.ts';
import { TooManyRequestsError } from '../../kube/client/api-error.ts';
import type { JournalParts } from './journal-parts.ts';
import type { RecordChanges } from './record-changes.ts';
import { headerKey, journalFormat, parseHeader, parseShard, type ShardHeader } from './shard-contents.ts';
import { OtherFormatError, type RequestFailure, RequestFailures, type ShardObject } from './shard-storage.ts';
import type { Shard, ShardWrite } from './shard.ts';
import type { OwnWrites } from './signs-of-life.ts';

/** How a write has ended: `refused` can be repeated later, `ended` never. */
export type WriteOutcome =
  { kind: 'stored'; write: ShardWrite } | { kind: 'refused'; error: Error } | { kind: 'ended'; error: Error };

type ShardWriterOptions = JournalParts & {
  changes: RecordChanges;
  /** Of a process that works beside others: what its writes show. */
  ownWrites: OwnWrites | undefined;
};

const firstPauseMs = 50;
const maxPauseMs = 2000;
/** After so many conflicts in a row a write is repeated at once, as others write, too; after further ones only after a pause. */
const quickConflicts = 8;

/** Writes shards, through conflicts, lost responses and outages. */
export class ShardWriter {
  readonly #options: ShardWriterOptions;
  #sequence = 0;

  constructor(options: ShardWriterOptions) {
    this.#options = options;
  }

  /** Writes what a shard has to write. Waits while the API server is overloaded or away. Never rejects. */
  async write(shard: Shard): Promise<WriteOutcome> {
    const { journal, status } = this.#options;
    const attempt: Attempt = { write: undefined, mustRead: false };
    const failures = new RequestFailures({ journal, status });
    let pauseMs = firstPauseMs;
    for (let conflicts = 0; ;) {
      try {
        const write = await this.#attempt(shard, attempt);
        if (write !== undefined) return { kind: 'stored', write };
      } catch (error) {
        const failure = await this.#failureOf(error, shard, { attempt, failures });
        if (failure === 'refused' || failure === 'ended') {
          if (attempt.write !== undefined) shard.undo(attempt.write);
          return { kind: failure, error: error as Error };
        }
        if (failure === 'conflict') conflicts++;
        this.#prepareNext(shard, attempt, { failure, error });
        if (failure === 'gone' || (failure === 'conflict' && conflicts <= quickConflicts)) continue;
        await journal.clock.sleep(pauseMs, { signal: status.fencedOrEnded }).catch(() => undefined);
        pauseMs = Math.min(2 * pauseMs, maxPauseMs);
      }
    }
  }

  async #failureOf(
    error: unknown,
    { object }: Shard,
    { attempt, failures }: { attempt: Attempt; failures: RequestFailures },
  ): Promise<RequestFailure> {
    const isCreation = object === undefined && !attempt.mustRead;
    const failure = await failures.classify(error);
    return failure === 'gone' && isCreation ? 'refused' : failure;
  }

  #prepareNext(shard: Shard, attempt: Attempt, { failure, error }: { failure: RequestFailure; error: unknown }): void {
    if (failure === 'gone') this.#restart(shard, attempt);
    else if (failure === 'conflict') attempt.mustRead = true;
    else if (attempt.write !== undefined && !(error instanceof TooManyRequestsError)) attempt.mustRead = true; // it may have been carried out
  }

  /** One step. @returns undefined when there is more to do at once. */
  async #attempt(shard: Shard, attempt: Attempt): Promise<ShardWrite | undefined> {
    const { journal, storage } = this.#options;
    const { clock } = journal;
    if (attempt.mustRead) return this.#readAgain(shard, attempt);
    const object = shard.object ?? (await this.#create(shard));
    if (shard.isNew) await this.#confirm(shard);
    attempt.write ??= shard.begin(++this.#sequence, this.#header(shard, object.uid));
    const { write } = attempt;
    const sentAt = momentOf(clock);
    const isSame = await storage.update(object, write.entries, write.discard);
    this.#onWritten(shard, write, sentAt);
    if (!isSame) {
      shard.recreated(write);
      attempt.write = undefined;
      return undefined;
    }
    shard.complete(write);
    return write;
  }

  /** @param sentAt - the moment before the request. */
  #onWritten(shard: Shard, { bytes }: ShardWrite, sentAt: Moment): void {
    const { journal, state, ownWrites } = this.#options;
    const { clock, metrics } = journal;
    const nowMs = clock.monotonicMs();
    shard.answered(nowMs);
    ownWrites?.add(shard, sentAt);
    metrics.written((nowMs - sentAt.monotonicMs) / 1000, bytes);
    metrics.size(state.all().reduce((sum, each) => sum + (each.object === undefined ? 0 : each.bytes), 0));
  }

  /** @throws when another process has written the first shard: this one does not hold the journal any more. */
  async #confirm(shard: Shard): Promise<void> {
    const { journal, me, state, status, storage } = this.#options;
    const { root } = state;
    if (!journal.exclusive || shard === root) return;
    const object = await storage.read(root.index);
    const holder = parseHeader(object?.entries.get(headerKey)).header?.writer;
    if (holder !== undefined && holder !== me) throw status.fence(holder);
  }

  /** Creates the shard's object, whose header names this process from the beginning: so others know whose it is. */
  async #create(shard: Shard): Promise<ShardObject> {
    this.#sequence++;
    const header = this.#header(shard, '');
    const object = await this.#options.storage.create(shard.index, { [headerKey]: JSON.stringify(header) });
    shard.created(object, header);
    return object;
  }

  #header(shard: Shard, uid: string): ShardHeader {
    const { journal, me } = this.#options;
    const renewedAt = new Date(journal.clock.wallMs()).toISOString();
    const common = { format: journalFormat, uid, writer: me, sequence: this.#sequence, renewedAt };
    return { ...common, ...this.#rootFields(shard) };
  }

  /** Fields of the header that only the first shard has. */
  #rootFields(shard: Shard): Partial<ShardHeader> {
    const { journal, me, state, heartbeats } = this.#options;
    const { exclusive, clock, adoptAfterMs } = journal;
    if (!state.isRoot(shard)) return {};
    const shards = state.count;
    if (exclusive) return { shards };
    const sinceMs = clock.monotonicMs() - 10 * adoptAfterMs;
    return { shards, renewals: heartbeats.renewals(me, shard.header?.renewals ?? {}, sinceMs) };
  }

  /** After a conflict: either an earlier attempt was carried out and its response lost, or somebody has changed the shard. */
  async #readAgain(shard: Shard, attempt: Attempt): Promise<ShardWrite | undefined> {
    const { journal, me, storage, changes } = this.#options;
    const { write } = attempt;
    if (!shard.isOwn) await this.#confirm(shard);
    const object = await storage.read(shard.index);
    attempt.mustRead = false;
    if (object === undefined) {
      this.#restart(shard, attempt);
      return undefined;
    }
    const contents = parseShard(object, journal);
    if ('otherFormat' in contents) throw new OtherFormatError(storage.nameOf(shard.index), contents.otherFormat);
    if (contents.header?.writer === me) shard.recognized(); // the response to its creation was lost
    const isStored = write?.sequence === contents.header?.sequence && contents.header?.writer === me;
    if (write !== undefined && isStored) shard.complete(write);
    else if (write !== undefined) shard.undo(write);
    attempt.write = undefined;
    changes.onChanged(shard, contents);
    return isStored ? write : undefined;
  }

  /** The object is gone: everything is written into a new one. */
  #restart(shard: Shard, attempt: Attempt): void {
    if (attempt.write !== undefined) shard.undo(attempt.write);
    attempt.write = undefined;
    shard.vanished();
  }
}

interface Attempt {
  write: ShardWrite | undefined;
  mustRead: boolean;
}
