import { decodeContinue, encodeContinue } from './continue-token.ts';
import { parseFieldSelector } from './field-selector.ts';
import { parseLabelSelector } from './label-selector.ts';
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
export interface ListPage {
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
