import { randomUUID } from 'node:crypto';
import { joinSignals } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { type Moment, momentOf } from '../../base/permit.ts';
import { ConflictError, ForbiddenError, NotFoundError } from '../client/api-error.ts';
import type { KubeClient } from '../client/kube-client.ts';
import type { ObjectReference } from '../kube-object.ts';
import type { HolderSocket } from './holder-socket.ts';
import {
  type Lease,
  type LeaseRecord,
  type LockKind,
  markOf,
  microTime,
  recordText,
  withMark,
} from './lease-record.ts';

export interface LeaseLockOptions {
  client: KubeClient;
  /** The kind of object that holds the record. */
  kind: LockKind;
  namespace: string;
  name: string;
  /** The holder identity. Of several processes that share it, one holds the Lease, and the others wait. */
  identity: string;
  /** Proves that an earlier process with this identity has ended, so that its Lease can be taken over at once. */
  socket: HolderSocket;
  /** Set on the Lease at each write, beside the labels it has. */
  labels: Readonly<Record<string, string>>;
  leaseDurationMs: number;
  clock: Clock;
  logger: Logger;
  /** A renewal needed more than one request. */
  onSlowPath?: () => void;
  /** Called with the error of each request that failed, and with undefined once the Lease was written, or is held by another. */
  onRequest?: (error: unknown) => void;
}

/** How the requests of one attempt are sent. */
export interface AttemptOptions {
  /** Only renews: does not take a Lease that somebody else has held or released meanwhile. Default false. */
  keepOnly?: boolean;
  /** Over connections of its own. Default false. */
  newConnection?: boolean;
  /** Timeout of each request, in milliseconds. Default: only the signal ends it. */
  requestTimeoutMs?: number | undefined;
  signal: AbortSignal;
}

type SendOptions = Pick<AttemptOptions, 'newConnection' | 'requestTimeoutMs' | 'signal'>;

/** A lease of another holder is taken over this long after its expiry, in milliseconds. */
const takeOverMarginMs = 1000;
/** Attempts to release a Lease that changes between its read and its write. */
const maxReleaseTries = 3;

/**
 * The Lease as last observed, and the attempts to hold it. Whether a record is still valid is judged by when this process
 * saw it change, never by the times in it: clocks of machines differ.
 */
export class LeaseLock {
  readonly #options: LeaseLockOptions;
  /** Names this process in the marks that it writes. */
  readonly #me = randomUUID();
  #lease: Lease | undefined;
  #observedText: string | undefined;
  /** The newest record that this process is known to have written. */
  #ownText: string | undefined;
  #observedAtMs = -Infinity;
  #renewedAt: Moment | undefined;
  #forbidden: ForbiddenError | undefined;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
  }

  /** Who held the Lease when it was last seen; empty: nobody. */
  get holder(): string {
    return this.#record.holderIdentity ?? '';
  }

  /** Whether we held it when it was last seen: this process, and not another one with the same identity. */
  get isOurs(): boolean {
    return this.#lease !== undefined && this.#holds(this.#lease);
  }

  /** Whether another process holds it with our identity, or did until it ended. */
  get isOfNamesake(): boolean {
    return this.holder === this.#options.identity && !this.isOurs;
  }

  #holds({ spec }: Lease): boolean {
    return spec?.holderIdentity === this.#options.identity && recordText(spec) === this.#ownText;
  }

  /** Why we are not permitted to hold the Lease: from a forbidden request until a write succeeds, or another holds it. */
  get forbidden(): ForbiddenError | undefined {
    return this.#forbidden;
  }

  /**
   * Monotonic milliseconds at which the observed record expires; one of another holder only a second later, so that
   * its last writes come before any of ours.
   */
  get expiresAtMs(): number {
    const expiresAtMs = this.#observedAtMs + (this.#record.leaseDurationSeconds ?? 0) * 1000;
    return this.isOurs ? expiresAtMs : expiresAtMs + takeOverMarginMs;
  }

  /** Monotonic milliseconds at which the record was last seen to change, or at which we sent our last write of it. */
  get observedAtMs(): number {
    return this.#observedAtMs;
  }

  /** When our last write of the Lease was sent; undefined before the first. */
  get renewedAt(): Moment | undefined {
    return this.#renewedAt;
  }

  /** The object for events about it: with the UID of the Lease as last seen, by which `kubectl describe` finds them. */
  get reference(): ObjectReference {
    const { group, version, kind } = this.#options.kind.resource;
    const { uid, resourceVersion } = this.#lease?.metadata ?? {};
    return {
      apiVersion: group === '' ? version : `${group}/${version}`,
      kind,
      ...this.#name,
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    };
  }

  /** Records the Lease as a watch or a GET returned it. @returns whether the record changed. */
  observe(lease: Lease): boolean {
    const text = recordText(lease.spec);
    this.#lease = lease;
    // also a try whose response was lost; the annotation may be gone again, the record counts
    if (markOf(lease)?.process === this.#me) this.#ownText = text;
    if (text === this.#observedText) return false;
    this.#observedText = text;
    // it is unknown when our write arrived if its response was lost: that does not extend the lease
    const ownAtMs = this.isOurs ? this.#renewedAt?.monotonicMs : undefined;
    this.#observedAtMs = ownAtMs ?? this.#options.clock.monotonicMs();
    return true;
  }

  /** The Lease was deleted: it is free. */
  forget(): void {
    this.#lease = undefined;
    this.#observedText = undefined;
    this.#observedAtMs = -Infinity;
  }

  /**
   * One attempt to get or keep the Lease. Several may be under way.
   *
   * @returns whether we hold it now. Failures of the API are logged and count as no, and so does a success whose
   * response is read only after the lease has expired again.
   */
  async tryAcquireOrRenew(options: AttemptOptions): Promise<boolean> {
    return (await this.#attempt(options)) && !this.#hasExpired();
  }

  async #attempt(options: AttemptOptions): Promise<boolean> {
    const { logger, onSlowPath } = this.#options;
    const { keepOnly = false, signal } = options;
    if (this.#lease !== undefined && this.isOurs && !this.#hasExpired()) {
      if (await this.#write(this.#lease, this.#renewed(), options, 'debug')) return true;
      if (signal.aborted || this.#hasExpired()) return false;
      onSlowPath?.();
    }
    let lease: Lease;
    try {
      lease = await this.#read(options);
    } catch (error) {
      if (error instanceof NotFoundError) return this.#create(options);
      if (signal.aborted) return false;
      logger[this.#noted(error, 'error')]({ err: error, lock: this.#text }, 'Error retrieving lease lock');
      return false;
    }
    this.observe(lease);
    if (keepOnly && !this.isOurs) return false;
    const isSuccessor = this.isOfNamesake && (await this.#hasEnded(lease));
    if (this.holder !== '' && !this.isOurs && !isSuccessor && !this.#hasExpired()) {
      this.#forbidden = undefined; // nothing is to be written now
      this.#options.onRequest?.(undefined);
      logger.debug({ lock: this.#text, holder: this.holder }, 'Lease is held by another and has not yet expired');
      return false;
    }
    return this.#write(lease, this.isOurs || isSuccessor ? this.#renewed() : this.#taken(), options, 'error');
  }

  /** Whether the process that wrote the Lease is known to have ended: it had bound the socket then, and this process has bound it now. */
  async #hasEnded(lease: Lease): Promise<boolean> {
    const place = await this.#options.socket.hold(lease.metadata.uid ?? '');
    return place !== '' && markOf(lease)?.place === place;
  }

  /**
   * Releases the Lease if we hold it, so that another need not wait for its expiry. One attempt of several that may be under way.
   *
   * @returns whether we hold it no longer. Failures are logged and count as no.
   */
  async release(options: SendOptions): Promise<boolean> {
    const { clock, logger } = this.#options;
    try {
      for (let tries = 1; ; tries++) {
        if (!this.isOurs) return true;
        const lease = await this.#read(options);
        this.observe(lease);
        if (!this.#holds(lease)) return true; // another took it meanwhile
        const now = microTime(clock.wallMs());
        const free = { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: now, renewTime: now };
        try {
          await this.#update(lease, { ...this.#record, ...free }, options);
          logger.info({ lock: this.#text }, 'Lease released');
          return true;
        } catch (error) {
          // a renewal of ours that the end has interrupted may have been written since
          if (!(error instanceof ConflictError) || tries >= maxReleaseTries) throw error;
        }
      }
    } catch (error) {
      if (!options.signal.aborted) logger.debug({ err: error, lock: this.#text }, 'Failed to release the lease');
      return false;
    }
  }

  #hasExpired(): boolean {
    return this.expiresAtMs <= this.#options.clock.monotonicMs();
  }

  get #record(): LeaseRecord {
    return this.#lease?.spec ?? {};
  }

  get #name(): { namespace: string; name: string } {
    return { namespace: this.#options.namespace, name: this.#options.name };
  }

  get #text(): string {
    return `${this.#options.namespace}/${this.#options.name}`;
  }

  /** Sends one request within its time. */
  async #send<T>(
    { signal, requestTimeoutMs, newConnection = false }: SendOptions,
    send: (options: { signal: AbortSignal; newConnection: boolean }) => Promise<T>,
  ): Promise<T> {
    using ended = joinSignals([signal], { clock: this.#options.clock, timeoutMs: requestTimeoutMs });
    return await send({ signal: ended.signal, newConnection });
  }

  async #read(options: SendOptions): Promise<Lease> {
    const { client, kind } = this.#options;
    return kind.toLease(await this.#send(options, (how) => client.get(kind.resource, this.#name, how)));
  }

  async #create(options: SendOptions): Promise<boolean> {
    const { client, kind, labels, logger } = this.#options;
    const lease = await this.#marked({
      metadata: { ...this.#name, ...(Object.keys(labels).length > 0 && { labels: { ...labels } }) },
      spec: { ...this.#taken(), leaseTransitions: 0 },
    });
    const sentAt = momentOf(this.#options.clock);
    try {
      const created = await this.#send(options, (how) => client.create(kind.resource, kind.fromLease(lease), how));
      this.#wrote(kind.toLease(created), sentAt);
      return true;
    } catch (error) {
      if (options.signal.aborted) return false;
      logger[this.#noted(error, 'error')]({ err: error, lock: this.#text }, 'Error initially creating lease lock');
      return false;
    }
  }

  async #write(lease: Lease, spec: LeaseRecord, options: SendOptions, level: 'debug' | 'error'): Promise<boolean> {
    try {
      await this.#update(lease, spec, options);
      return true;
    } catch (error) {
      if (options.signal.aborted) return false;
      this.#options.logger[this.#noted(error, level)]({ err: error, lock: this.#text }, 'Failed to update lease');
      return false;
    }
  }

  async #update(lease: Lease, spec: LeaseRecord, options: SendOptions): Promise<void> {
    const { client, kind, labels, clock } = this.#options;
    const allLabels = { ...lease.metadata.labels, ...labels };
    const metadata = { ...lease.metadata, ...(Object.keys(allLabels).length > 0 && { labels: allLabels }) };
    const written = await this.#marked({ ...lease, metadata, spec: { ...lease.spec, ...spec } });
    const sentAt = momentOf(clock);
    const updated = await this.#send(options, (how) => client.update(kind.resource, kind.fromLease(written), how));
    this.#wrote(kind.toLease(updated), sentAt);
  }

  /** With the mark of this process, for the record as the server will have it. */
  async #marked(lease: Lease): Promise<Lease> {
    const { kind, socket } = this.#options;
    const place = await socket.hold(lease.metadata.uid ?? '');
    const renewTime = kind.toLease(kind.fromLease(lease)).spec?.renewTime ?? '';
    const annotations = withMark(lease, { renewTime, process: this.#me, place });
    return { ...lease, metadata: { ...lease.metadata, annotations } };
  }

  /**
   * Records the response to a write. Others may have seen the write as soon as it was sent, however late the response: the
   * lease counts from then. Of several under way the response to an older one may be read last: it says nothing new.
   */
  #wrote(lease: Lease, sentAt: Moment): void {
    if (this.#renewedAt !== undefined && sentAt.monotonicMs < this.#renewedAt.monotonicMs) return;
    this.#ownText = recordText(lease.spec);
    this.observe(lease);
    this.#observedAtMs = sentAt.monotonicMs;
    this.#renewedAt = sentAt;
    this.#forbidden = undefined;
    this.#options.onRequest?.(undefined);
  }

  /** Reports a failed request, and remembers a forbidden one. @returns the level to log it at: `MissingPermissions` has reported missing permissions. */
  #noted(error: unknown, level: 'debug' | 'error'): 'debug' | 'error' {
    this.#options.onRequest?.(error);
    if (!(error instanceof ForbiddenError)) return level;
    this.#forbidden = error;
    return error.isAdmission ? level : 'debug';
  }

  #renewed(): LeaseRecord {
    const { clock, leaseDurationMs } = this.#options;
    return {
      ...this.#record,
      leaseDurationSeconds: Math.floor(leaseDurationMs / 1000),
      renewTime: microTime(clock.wallMs()),
    };
  }

  #taken(): LeaseRecord {
    const { clock, identity, leaseDurationMs } = this.#options;
    const now = microTime(clock.wallMs());
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.floor(leaseDurationMs / 1000),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: (this.#record.leaseTransitions ?? 0) + 1,
    };
  }
}
