/** What happened to a resource between two versions, as far as the API server still knows it. */
import type { Clock } from '../../base/clock.ts';
import { errorFromStatus } from '../client/error-from-status.ts';
import { TransportError, type RequestInfo } from '../client/api-error.ts';
import { isOlderVersion, type KubeObject, type Resource, resourcePath, type Status } from '../kube-object.ts';
import type { ChangeType } from './reflector-cache.ts';
import type { CodingChoice } from './coding-choice.ts';
import { watchStream } from './watch-stream.ts';

export interface ReadChangesOptions {
  coding: CodingChoice;
  clock: Clock;
  /** Of the whole cluster. */
  resource: Resource;
  /** The changes after this resource version. */
  from: string;
  /** At least up to this one. */
  until: string;
  onChange: (type: ChangeType, object: KubeObject) => void;
  /** Perhaps of another API server behind the same address, which knows more. Default false. */
  newConnection?: boolean;
  signal: AbortSignal;
}

/** Each watch lasts so long: a server sends a bookmark 2 s before its end. */
const watchS = 4;
/** So many watches in a row may end without a word about how far the server is. */
const maxSilentWatches = 30;
const pauseMs = 1000;

/**
 * Watches from one version until the server says that it has sent everything up to another (Kubernetes API concepts, "Watch
 * bookmarks"). Changes after that one may be among those that are delivered.
 *
 * @throws {ExpiredError} when the server no longer knows so much, which it has to for about a minute; {ApiError} and
 * {TransportError} when it cannot be asked, or never says how far it is.
 */
export async function readChanges(options: ReadChangesOptions): Promise<void> {
  const { clock, from, until, signal } = options;
  let version = from;
  let silent = 0;
  while (isOlderVersion(version, until)) {
    // a server that does not get on may be one of several
    const newConnection = options.newConnection === true || silent > 0;
    const reached = await watchOnce({ ...options, from: version, newConnection });
    silent = reached === version ? silent + 1 : 0;
    version = reached;
    if (silent >= maxSilentWatches) {
      throw new TransportError('the API server sends neither events nor bookmarks', { code: 'TIMEOUT' });
    }
    if (silent > 0) await clock.sleep(pauseMs, { signal });
  }
}

/** @returns the version up to which everything came. */
async function watchOnce(options: ReadChangesOptions): Promise<string> {
  const { coding, clock, resource, from, until, onChange, newConnection = false, signal } = options;
  const info: RequestInfo = { verb: 'watch', resource };
  const ending = new AbortController();
  const query = { watch: true, allowWatchBookmarks: true, resourceVersion: from, timeoutSeconds: watchS };
  let version = from;
  try {
    const events = watchStream({
      coding,
      clock,
      request: { path: resourcePath(resource, {}), query, info, newConnection },
      timeoutS: watchS,
      onSuccess: () => undefined,
      signal: AbortSignal.any([signal, ending.signal]),
    });
    for await (const { type, object } of events) {
      if (type === 'ERROR') throw errorFromStatus(object as unknown as Status, info);
      if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') onChange(type, object);
      const { resourceVersion = '' } = object.metadata;
      if (resourceVersion !== '') version = resourceVersion;
      if (!isOlderVersion(version, until)) break;
    }
  } finally {
    ending.abort(new Error('enough was read'));
  }
  return version;
}
