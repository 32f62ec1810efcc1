import type { Clock } from '../../base/clock.ts';
import { type Moment, momentOf } from '../../base/permit.ts';
import { TooManyRequestsError } from '../../kube/client/api-error.ts';
import type { Shard, ShardWrite } from './shard.ts';
import type { ShardContents } from './shard-contents.ts';
import { headerKey, journalFormat, type ShardHeader } from './shard-header.ts';
import { ShardAlteredError, type ShardObject, type ShardStorage } from './shard-storage.ts';
import { classifyFailure, forbiddenGraceMs } from './write-failure.ts';

/** How a write has ended: `refused` can be repeated later, `ended` never. */
export type WriteOutcome =
  { kind: 'stored'; write: ShardWrite } | { kind: 'refused'; error: Error } | { kind: 'ended'; error: Error };

export interface ShardWriterOptions {
  storage: ShardStorage;
  clock: Clock;
  writer: string;
  /** Aborts once nothing can be sent any more. */
  ended: AbortSignal;
  /** Fields of the header that only the first shard has. */
  rootFields: (shard: Shard) => Partial<ShardHeader>;
  /** @returns undefined when only a newer version can read it. */
  parse: (object: ShardObject) => ShardContents | undefined;
  /** The shard was changed by somebody. @throws when nothing may be written any more. */
  onChanged: (shard: Shard, contents: ShardContents) => void;
  /** Called before a shard is used that this process has not written. @throws when another process holds the journal. */
  confirm: (shard: Shard) => Promise<void>;
  /** Whether a permission is missing for certain, asked when a request was forbidden. */
  isDenied: () => Promise<boolean>;
  /** @param write.sentAt - the moment before the request. */
  onWritten: (shard: Shard, write: { seconds: number; bytes: number; sentAt: Moment }) => void;
}

const firstPauseMs = 50;
const maxPauseMs = 2000;
/** So many conflicts in a row are answered at once: others write, too. Further ones after a pause. */
const quickConflicts = 8;

/** Writes shards, through conflicts, lost answers and outages. */
export class ShardWriter {
  readonly #options: ShardWriterOptions;
  #sequence = 0;

  constructor(options: ShardWriterOptions) {
    this.#options = options;
  }

  /** Writes what a shard has to write. Waits while the API server is overloaded or away. Never rejects. */
  async write(shard: Shard): Promise<WriteOutcome> {
    const { clock, ended, isDenied } = this.#options;
    const attempt: Attempt = { write: undefined, mustRead: false };
    let pauseMs = firstPauseMs;
    let conflicts = 0;
    let forbiddenSinceMs: number | undefined;
    for (;;) {
      let isTransient = false;
      try {
        const write = await this.#attempt(shard, attempt);
        if (write !== undefined) return { kind: 'stored', write };
      } catch (error) {
        if (ended.aborted) {
          if (attempt.write !== undefined) shard.undo(attempt.write);
          return { kind: 'ended', error: error as Error }; // whatever the error is, the next try would end at once, too
        }
        const isCreation = shard.object === undefined && !attempt.mustRead;
        const isUnfit = error instanceof NewerFormatError || error instanceof ShardAlteredError;
        let failure = isUnfit ? 'refused' : classifyFailure(error);
        if (failure === 'gone' && isCreation) failure = 'refused';
        if (failure === 'forbidden') {
          forbiddenSinceMs ??= clock.monotonicMs();
          const isOver = clock.monotonicMs() - forbiddenSinceMs >= forbiddenGraceMs || (await isDenied());
          failure = isOver ? 'refused' : 'transient';
        } else forbiddenSinceMs = undefined;
        if (failure === 'conflict') {
          attempt.mustRead = true;
          isTransient = ++conflicts > quickConflicts;
        } else if (failure === 'gone') this.#restart(shard, attempt);
        else if (failure === 'transient') {
          isTransient = true;
          if (attempt.write !== undefined && !(error instanceof TooManyRequestsError)) attempt.mustRead = true; // it may be done
        } else {
          if (attempt.write !== undefined) shard.undo(attempt.write);
          return { kind: failure === 'refused' ? 'refused' : 'ended', error: error as Error };
        }
      }
      if (!isTransient) continue;
      await clock.sleep(pauseMs, { signal: ended }).catch(() => undefined);
      pauseMs = Math.min(2 * pauseMs, maxPauseMs);
    }
  }

  /** One step. @returns undefined when there is more to do at once. */
  async #attempt(shard: Shard, attempt: Attempt): Promise<ShardWrite | undefined> {
    const { storage, clock, onWritten, confirm } = this.#options;
    if (attempt.mustRead) return this.#readAgain(shard, attempt);
    const object = shard.object ?? (await this.#create(shard));
    if (shard.isNew) await confirm(shard);
    shard.isNew = false;
    attempt.write ??= shard.begin(++this.#sequence, this.#header(shard, object.uid));
    const { write } = attempt;
    const sentAt = momentOf(clock);
    const isSame = await storage.update(object, write.entries, write.discard);
    shard.writtenAtMs = clock.monotonicMs();
    const seconds = (shard.writtenAtMs - sentAt.monotonicMs) / 1000;
    onWritten(shard, { seconds, bytes: write.bytes, sentAt });
    if (!isSame) {
      shard.undo(write); // its header has the UID of the old object
      attempt.write = undefined;
      shard.isNew = true;
      return undefined;
    }
    shard.complete(write);
    return write;
  }

  /** Creates the shard's object, as this process's from the beginning: another one that meets it knows whose it is. */
  async #create(shard: Shard): Promise<ShardObject> {
    this.#sequence++;
    const header = this.#header(shard, '');
    const object = await this.#options.storage.create(shard.index, { [headerKey]: JSON.stringify(header) });
    shard.object = object;
    shard.header = header;
    shard.isOwn = shard.isNew = true;
    return object;
  }

  #header(shard: Shard, uid: string): ShardHeader {
    const { clock, writer, rootFields } = this.#options;
    const renewedAt = new Date(clock.wallMs()).toISOString();
    return { format: journalFormat, uid, writer, sequence: this.#sequence, renewedAt, ...rootFields(shard) };
  }

  /** After a conflict: either an earlier attempt was carried out and its answer lost, or somebody has changed the shard. */
  async #readAgain(shard: Shard, attempt: Attempt): Promise<ShardWrite | undefined> {
    const { storage, writer, parse, onChanged, confirm } = this.#options;
    const { write } = attempt;
    if (!shard.isOwn) await confirm(shard);
    const object = await storage.read(shard.index);
    attempt.mustRead = false;
    if (object === undefined) {
      this.#restart(shard, attempt);
      return undefined;
    }
    const contents = parse(object);
    if (contents === undefined) throw new NewerFormatError(storage.nameOf(shard.index));
    shard.isOwn ||= contents.header?.writer === writer; // the answer to its creation was lost
    const isStored = write?.sequence === contents.header?.sequence && contents.header?.writer === writer;
    if (write !== undefined && isStored) shard.complete(write);
    else if (write !== undefined) shard.undo(write);
    attempt.write = undefined;
    onChanged(shard, contents);
    return isStored ? write : undefined;
  }

  /** The object is gone: everything is written into a new one. */
  #restart(shard: Shard, attempt: Attempt): void {
    if (attempt.write !== undefined) shard.undo(attempt.write);
    attempt.write = undefined;
    shard.object = undefined;
  }
}

interface Attempt {
  write: ShardWrite | undefined;
  mustRead: boolean;
}

/** A newer version has taken the shard. */
class NewerFormatError extends Error {
  override readonly name = 'NewerFormatError';

  constructor(shard: string) {
    super(`${shard} is in a newer format than this version can read`);
  }
}
