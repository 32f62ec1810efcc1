/** Of an even number of values the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = Number.NaN, high = Number.NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

/** What a number of items took. */
export interface Load {
  count: number;
  cpuMs: number;
}

/** CPU of one item, in milliseconds. */
export interface PerItem {
  /** Of the larger load, what it would have taken without an item included. */
  average: number;
  /** What each further item took, from the smaller load to the larger one. */
  slope: number;
}

/** @throws {RangeError} when the second load is not the larger one, or the first has no item. */
export function perItem(smaller: Load, larger: Load): PerItem {
  const further = larger.count - smaller.count;
  if (!(smaller.count > 0) || !(further > 0)) {
    throw new RangeError(`no slope from ${smaller.count} to ${larger.count} items`);
  }
  return { average: larger.cpuMs / larger.count, slope: (larger.cpuMs - smaller.cpuMs) / further };
}
