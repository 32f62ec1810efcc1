/** Read access to an informer's cache. Objects are shared and read only; none is ever written back. */
export interface Lister<T> {
  /** The object under `namespace/name` (or `name`), as the cache last saw it. */
  get(key: string): T | undefined;
  /** All objects, in no order. */
  list(): Iterable<T>;
  /** The objects whose index `indexName` holds `value`. Throws when there is no such index. */
  byIndex(indexName: string, value: string | number): T[];
}
