/** Reads what a log of the volumes lacks: from before the cache began, between two of its lists, or what the cache does not have yet. */
import { joinSignals, untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { CodingChoice } from '../../kube/cache/coding-choice.ts';
import { readChanges } from '../../kube/cache/read-changes.ts';
import { isVersionUnavailable } from '../../kube/client/api-error.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { messageDecoder } from '../../kube/protobuf/message-decoder.ts';
import { Backoff } from '../../kube/queue/rate-limiter.ts';
import { type PersistentVolume, persistentVolumes } from '../objects.ts';
import type { Hole, VolumeLog } from './volume-log.ts';

interface VolumeLogReaderOptions {
  log: VolumeLog;
  transport: Transport;
  /** Aborts when what is under way is to be abandoned. */
  abort: AbortSignal;
  clock: Clock;
  logger: Logger;
}

/** A version that a server no longer knows is tried so many times: one of several servers may have been restarted. */
const triesPerVersion = 3;
/** So many versions are tried for a hole, from the oldest on. */
const maxVersions = 8;
/** How long the present state may take to be read, in milliseconds. */
const patienceMs = 15_000;
const expired = 'the API server no longer knows which PersistentVolumes there were meanwhile';

/** What has happened until now could not be read yet. */
export class NotReachedError extends Error {
  override readonly name = 'NotReachedError';
}

export class VolumeLogReader {
  readonly #options: VolumeLogReaderOptions;
  readonly #coding: CodingChoice;
  readonly #backoff: Backoff;
  #isFilling = false;
  /** Versions that are waited for. */
  readonly #goals = new Set<number>();
  #reading: Promise<void> | undefined;

  constructor(options: VolumeLogReaderOptions) {
    this.#options = options;
    this.#coding = new CodingChoice({ ...options, protobuf: messageDecoder('PersistentVolume') });
    this.#backoff = new Backoff({ ...options, random: Math.random });
    options.log.readBy(this);
  }

  /** Fills the holes of the log, in the background. Safe to repeat. */
  fill(): void {
    if (!this.#isFilling) void this.#fillAll();
  }

  /**
   * Resolves once the log has everything up to a version. All who wait at the same time share the requests.
   *
   * @throws {NotReachedError} when that takes more than 15 s, such as where the API server does not say how far it is.
   */
  async reach(version: number, signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#options;
    if (log.reached >= version) return;
    if (Number.isNaN(version)) throw new NotReachedError('the API server does not number its resource versions');
    using limit = joinSignals([signal, this.#abort], { clock, timeoutMs: patienceMs });
    this.#goals.add(version);
    try {
      while (!(log.reached >= version)) {
        this.#reading ??= this.#readOn().finally(() => (this.#reading = undefined));
        await untilAborted(this.#reading, limit.signal);
      }
    } catch (error) {
      signal.throwIfAborted();
      this.#abort.throwIfAborted();
      const message = `the PersistentVolumes of now could not be read within ${patienceMs} ms`;
      throw new NotReachedError(message, { cause: error });
    } finally {
      this.#goals.delete(version);
    }
  }

  get #abort(): AbortSignal {
    return this.#options.abort;
  }

  #isAborted(): boolean {
    return this.#abort.aborted;
  }

  /** From where the log ends to what is waited for. */
  async #readOn(): Promise<void> {
    const { log } = this.#options;
    await Promise.resolve(); // others are about to wait, too
    const from = log.reached;
    const until = Math.max(...this.#goals);
    if (!(until > from)) return;
    using limit = joinSignals([this.#abort], { clock: this.#options.clock, timeoutMs: patienceMs });
    await this.#read(from, until, limit.signal);
  }

  /** Never rejects. */
  async #fillAll(): Promise<void> {
    const { log, logger } = this.#options;
    this.#isFilling = true;
    await Promise.resolve(); // more is about to be asked for
    for (let [hole] = log.pending; hole !== undefined && !this.#isAborted(); [hole] = log.pending) {
      try {
        await this.#fillHole(hole);
      } catch (error) {
        if (this.#isAborted()) break;
        logger.warn({ err: error }, 'The history of the PersistentVolumes could not be read, trying again');
        await this.#backoff.wait(this.#abort).catch(() => undefined);
      }
    }
    this.#isFilling = false;
  }

  /** Reads a hole from its beginning, or from the oldest version on that a server still knows. */
  async #fillHole({ from, until }: Hole): Promise<void> {
    const { log } = this.#options;
    const inside = log.neededVersions.filter((version) => version > from && version < until);
    const versions = [from, ...new Set(inside.sort((a, b) => a - b))];
    let [first, known] = [0, versions.length];
    for (let tries = 0; tries < maxVersions && first < known; tries++) {
      const index = tries === 0 ? 0 : (first + known) >> 1;
      if (await this.#isRead(versions[index] ?? from, until)) known = index;
      else first = index + 1;
    }
    log.lose(from, versions[known] ?? until, expired);
  }

  /** @returns false when no server knows so much any more. */
  async #isRead(from: number, until: number): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#read(from, until, this.#abort, { newConnection: tries > 1 });
        return true;
      } catch (error) {
        if (!isVersionUnavailable(error)) throw error;
        if (tries === triesPerVersion) return false;
      }
    }
  }

  async #read(from: number, until: number, signal: AbortSignal, { newConnection = false } = {}): Promise<void> {
    const { log, clock } = this.#options;
    await readChanges({
      coding: this.#coding,
      clock,
      resource: persistentVolumes,
      from: String(from),
      until: String(until),
      newConnection,
      onChange: (_type, object) => log.note(object as PersistentVolume),
      signal,
    });
    log.close(from, until);
  }
}
