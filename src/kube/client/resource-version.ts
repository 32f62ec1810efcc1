/**
 * Whether one version of an object is older than another (Kubernetes API concepts, "Resource versions": numbers that
 * grow). Versions that are no numbers are never older: then nothing is known of their order.
 */
export function isOlderVersion(version: string | undefined, than: string): boolean {
  const isNumber = /^\d+$/;
  return version !== undefined && isNumber.test(version) && isNumber.test(than) && BigInt(version) < BigInt(than);
}

/**
 * The place of a resource version among others: they are numbers, of which a later one is greater. NaN for what is none, such as
 * `0`, which stands for any version.
 */
export function orderOf(version: string | undefined): number {
  const order = /^[1-9]\d*$/.test(version ?? '') ? Number(version) : NaN;
  return Number.isSafeInteger(order) ? order : NaN;
}
