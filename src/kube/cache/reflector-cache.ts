import type { Logger } from '../../base/logger.ts';
import { type ApiError, ForbiddenError, type RequestInfo } from '../client/api-error.ts';
import { isOlderVersion, type KubeObject, objectKey, type Status, type WatchEvent } from '../kube-object.ts';
import { errorFromStatus } from '../client/error-from-status.ts';
import type { MissingPermissions } from '../client/missing-permissions.ts';
import { RewoundError } from './reflector-failures.ts';

/** Where a reflector puts what it sees. Calls never overlap: the next one waits for the end of `replace`. */
export interface ReflectorSink<T> {
  /** The object in the cache, so that an unchanged one is not kept twice while a list comes in. */
  get(key: string): T | undefined;
  /**
   * The whole content at a resource version: what is not in it is gone. What happened since the version before is not known.
   *
   * @param options.rewound - the server has gone back to an older state.
   */
  replace(objects: T[], resourceVersion: string, options: { rewound: boolean }): Promise<void>;
  upsert(object: T): void;
  remove(object: T): void;
  /** An event came, before the cache takes it; `object` as it came. */
  changed(type: ChangeType, object: KubeObject): void;
  /** An event came that is about nothing that is known. */
  missed(): void;
  /** The content is complete up to this resource version. */
  advanced(resourceVersion: string): void;
}

interface ReflectorCacheOptions<T> {
  sink: ReflectorSink<T>;
  /** Makes the cached form of an object as it came from the server; may take parts of it, must not keep it whole. */
  transform: (object: KubeObject) => T;
  /** Of the watch: its resource decides which events are expected. */
  info: RequestInfo;
  missingPermissions: MissingPermissions;
  logger: Logger;
}

/** The content that a reflector keeps up to date, and its resource version. */
export class ReflectorCache<T extends KubeObject> {
  readonly #options: ReflectorCacheOptions<T>;
  #lastVersion: string | undefined;
  #versionUnavailable = false;
  /** The server has gone back, and counts the same versions again for other content. */
  #mayRepeatVersions = false;

  constructor(options: ReflectorCacheOptions<T>) {
    this.#options = options;
  }

  /** Resource version up to which the cache is complete. */
  get lastVersion(): string | undefined {
    return this.#lastVersion;
  }

  /** The server has forgotten `lastVersion`, or has not seen it yet: the next list requests the most recent one. */
  markVersionUnavailable(): void {
    this.#versionUnavailable = true;
  }

  /**
   * Compares a version of the server, which was read after the content had the other one.
   *
   * @throws {RewoundError} when the server is older than the content: everything has to be listed again, and an object of the same
   * version may be another one.
   */
  throwIfRewound(serverVersion: string | undefined, version = this.#lastVersion ?? ''): void {
    if (!isOlderVersion(serverVersion, version)) return;
    this.#versionUnavailable = true;
    this.#mayRepeatVersions = true;
    throw new RewoundError(`the server is at version ${serverVersion ?? ''}, the cache at ${version}`);
  }

  /** Resource version to list at; empty for the most recent. `first` is the one for an empty cache. */
  versionToList(first: '' | '0'): string {
    return this.#versionUnavailable ? '' : (this.#lastVersion ?? first);
  }

  /** Replaces the content by that of a complete list. @throws {RewoundError} as `throwIfRewound`. */
  async replace(objects: T[], version: string): Promise<void> {
    if (!this.#mayRepeatVersions) this.throwIfRewound(version);
    await this.#options.sink.replace(objects, version, { rewound: this.#mayRepeatVersions });
    this.#lastVersion = version;
    this.#versionUnavailable = false;
    this.#mayRepeatVersions = false;
    this.#options.sink.advanced(version);
  }

  /** @throws {ApiError} for an event of type ERROR. */
  apply(event: WatchEvent, progress: WatchProgress): void {
    const { sink, logger, info } = this.#options;
    this.throwIfError(event);
    if (!this.isExpected(event)) {
      sink.missed();
      return;
    }
    if (event.type !== 'ADDED') progress.mayAdvance = true;
    if (event.type === 'ADDED' || event.type === 'MODIFIED' || event.type === 'DELETED') {
      sink.changed(event.type, event.object);
      const object = this.cachedForm(event.object);
      if (event.type === 'DELETED') this.#remove(object ?? sink.get(objectKey(event.object)));
      else if (object !== undefined) sink.upsert(object);
    } else if (event.type !== 'BOOKMARK') {
      logger.warn({ type: event.type, resource: info.resource.plural }, 'Unknown watch event ignored');
      sink.missed();
      return;
    }
    const version = event.object.metadata.resourceVersion;
    if (!progress.mayAdvance || version === undefined || version === '') return;
    this.#lastVersion = version;
    sink.advanced(version);
  }

  #remove(object: T | undefined): void {
    if (object !== undefined) this.#options.sink.remove(object);
  }

  throwIfError(event: WatchEvent): void {
    if (event.type !== 'ERROR') return;
    const { info, missingPermissions } = this.#options;
    const error: ApiError = errorFromStatus(event.object as unknown as Status, info);
    if (error instanceof ForbiddenError) missingPermissions.report(error);
    throw error;
  }

  /** Whether the event is about the resource; one that is not is logged. */
  isExpected({ object }: WatchEvent): boolean {
    const { info, logger } = this.#options;
    if (object.kind === info.resource.kind && typeof (object.metadata as unknown) === 'object') return true;
    logger.warn({ got: object.kind, want: info.resource.kind }, 'Watch event of another kind ignored');
    return false;
  }

  /**
   * The cached form; the cached object itself when it has the same version, so that a relist costs no memory. Undefined,
   * and logged, where the transform fails: one malformed object must not keep the others out.
   */
  cachedForm(object: KubeObject): T | undefined {
    const { sink, transform, logger, info } = this.#options;
    if ((object.metadata as object | null | undefined) == null) {
      const err = new TypeError('it has no metadata');
      logger.error({ err, resource: info.resource.plural }, 'An object could not be read and is left out');
      return undefined;
    }
    const known = this.#mayRepeatVersions ? undefined : sink.get(objectKey(object));
    if (known !== undefined && known.metadata.resourceVersion === object.metadata.resourceVersion) {
      if (known.metadata.uid === object.metadata.uid) return known;
    }
    try {
      return transform(object);
    } catch (error) {
      logger.error({ err: error, object: objectKey(object) }, 'An object could not be read and is left out');
      return undefined;
    }
  }
}

/**
 * Whether the resource version may be taken from the events of a watch. A watch without a version begins with an ADDED
 * event for each existing object, in no order of versions.
 */
export class WatchProgress {
  mayAdvance: boolean;

  constructor(startVersion: string) {
    this.mayAdvance = startVersion !== '' && startVersion !== '0';
  }
}

/** The types of watch events that change a resource. */
export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * Follows a cache on its way through the resource versions: for those who must know what happened between two of them, and
 * not only how it ended. Called synchronously and in order; must not throw.
 */
export interface CacheTrail {
  /**
   * The whole content was listed: what happened since the version before is not known.
   *
   * @param options.rewound - the server has gone back to an older state, as after a restore of etcd.
   */
  listed(resourceVersion: string, options: { rewound: boolean }): void;
  /** An event of the watch, also one that changes nothing that is cached. `object` as it came, not to be kept. */
  changed(type: ChangeType, object: KubeObject): void;
  /** An event that could not be read: nobody knows what it was about. */
  missed(): void;
  /** The cache has everything up to this resource version. */
  advanced(resourceVersion: string): void;
}
