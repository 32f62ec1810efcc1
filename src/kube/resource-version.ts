/**
 * Whether one version of an object is older than another (Kubernetes API concepts, "Resource versions": numbers that
 * grow). Versions that are no numbers are never older: then nothing is known of their order.
 */
export function isOlderVersion(version: string | undefined, than: string): boolean {
  const isNumber = /^\d+$/;
  return version !== undefined && isNumber.test(version) && isNumber.test(than) && BigInt(version) < BigInt(than);
}
