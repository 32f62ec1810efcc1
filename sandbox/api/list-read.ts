import { parseFieldSelector, parseLabelSelector } from './selectors.ts';
import { isObject } from './json.ts';
import type { ReadOptions } from './read-options.ts';
import type { ResourceType } from './resource-type.ts';
import type { Revision } from './revision.ts';
import { StatusError } from './status-error.ts';
import type { Store } from './store.ts';

/** Which objects of a resource a request is about. */
export interface Scope {
  readonly type: ResourceType;
  /** `undefined` for all namespaces and for cluster-scoped resources. */
  readonly namespace: string | undefined;
  /** A single object, as in a watch on its path. */
  readonly name?: string | undefined;
}

/** One page of a list. */
interface ListPage {
  readonly revisions: readonly Revision[];
  /** RV of the whole list: that of its first page. */
  readonly rv: number;
  readonly continueToken?: string;
  readonly remaining?: number;
}

/** Decides by the current state of an object whether a request is about it. */
export function scopeFilter(scope: Scope, options: ReadOptions): (revision: Revision) => boolean {
  const byLabels = parseLabelSelector(options.labelSelector);
  const byFields = parseFieldSelector(options.fieldSelector, scope.type);
  return ({ namespace, name, object }) =>
    (scope.namespace === undefined || namespace === scope.namespace) &&
    (scope.name === undefined || name === scope.name) &&
    (byLabels === undefined || byLabels(object.metadata.labels ?? {})) &&
    (byFields === undefined || byFields.matches(object));
}

/**
 * One page of a list as of the RV that the options ask for, which must not lie ahead.
 *
 * `limit` does not count for RV "0", which a watch cache returns as a whole.
 * @throws {StatusError} `Expired` for a state that has left the history.
 */
export function readList(store: Store, scope: Scope, options: ReadOptions): ListPage {
  const { type, namespace } = scope;
  const matches = scopeFilter(scope, options);
  const hasSelector = options.labelSelector !== undefined || options.fieldSelector !== undefined;
  const point = options.continueToken === undefined ? undefined : decodeContinue(options.continueToken);
  const exact = options.resourceVersion !== undefined && options.resourceVersion > 0 && isExact(options);
  const rv = point !== undefined && point.rv > 0 ? point.rv : exact ? (options.resourceVersion ?? 0) : store.rv;
  const limit = options.resourceVersion === 0 && point === undefined ? 0 : options.limit;
  let all: readonly Revision[] | undefined;
  if (rv === store.rv && limit === 0) all = narrowed(store, scope, options) ?? store.list(type.storage, namespace);
  else all = store.listAt(type.storage, rv);
  if (all === undefined) throw expired(rv, store, point?.after);
  const start = point === undefined ? 0 : firstAfter(all, point.after);
  const page: Revision[] = [];
  let rest = 0;
  for (let index = start; index < all.length; index++) {
    const revision = all[index];
    if (revision === undefined || !matches(revision)) continue;
    if (limit === 0 || page.length < limit) page.push(revision);
    else {
      rest++;
      if (hasSelector) break; // the count is not reported, so the first one too many is enough
    }
  }
  const last = page.at(-1);
  if (rest === 0 || last === undefined) return { revisions: page, rv };
  const continueToken = encodeContinue({ rv, after: last.key });
  return { revisions: page, rv, continueToken, ...(hasSelector ? {} : { remaining: rest }) };
}

/** With a limit and no match rule, RV "N" means exactly N (the legacy rule). */
function isExact({ resourceVersionMatch, limit }: ReadOptions): boolean {
  return resourceVersionMatch === 'Exact' || (resourceVersionMatch === undefined && limit > 0);
}

/** The one candidate of a selector on the name, found without a scan. */
function narrowed(store: Store, { type, namespace, name }: Scope, options: ReadOptions): Revision[] | undefined {
  const wanted = name ?? parseFieldSelector(options.fieldSelector, type)?.name;
  if (wanted === undefined || (type.namespaced && namespace === undefined)) return undefined;
  const revision = store.get(type.storage, namespace ?? '', wanted);
  return revision === undefined ? [] : [revision];
}

function firstAfter(revisions: readonly Revision[], key: string): number {
  let low = 0;
  let high = revisions.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((revisions[middle]?.key ?? '') <= key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The 410 for a state that is no longer known. */
function expired(rv: number, store: Store, after?: string): StatusError {
  if (after === undefined) {
    return new StatusError(
      'Expired',
      `The resourceVersion for the provided list is too old: ${rv} (${store.compactedRv})`,
    );
  }
  return new StatusError(
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. ' +
      'List again without it, or use the token of this response for the rest as it is now, which may not fit what was shown before.',
    { continueToken: encodeContinue({ rv: -1, after }) },
  );
}

/** The 504 for an RV that lies ahead. */
export function tooLargeResourceVersion(wanted: number, current: number): StatusError {
  const text = `Too large resource version: ${wanted}, current: ${current}`;
  return new StatusError('Timeout', `Timeout: ${text}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  });
}

/** Where the next page of a list begins. */
interface ContinuePoint {
  /** RV of the first page; -1 for a list that goes on with the state of the day. */
  readonly rv: number;
  /** Key of the last object shown. */
  readonly after: string;
}

/** The opaque token of a point. */
export function encodeContinue({ rv, after }: ContinuePoint): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start: `${after}\0` })).toString('base64url');
}

/** @throws {StatusError} `BadRequest` for a token that no server of this kind gave out. */
export function decodeContinue(token: string): ContinuePoint {
  try {
    const point: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (isObject(point) && point['v'] === 'meta.k8s.io/v1' && Number.isInteger(point['rv'])) {
      const { rv, start } = point as { rv: number; start: unknown };
      if (typeof start === 'string') return { rv, after: start.slice(0, -1) };
    }
  } catch {
    // Not JSON: the same response as for JSON that is no token.
  }
  throw new StatusError('BadRequest', 'continue key is not valid: it was not issued by this server');
}
