/** Volume attribute that says which process made a volume. */
export const identityKey = 'storage.kubernetes.io/csiProvisionerIdentity';

/**
 * The identity of this process: `<milliseconds>-<0..9999>-<driver>`, in node deployment plus `-<node>`. Made once at
 * start.
 *
 * @param options.random - a number from 0 up to 1, exclusive.
 */
export function provisionerIdentity(options: {
  driverName: string;
  wallMs: number;
  random: number;
  nodeName?: string | undefined;
}): string {
  const { driverName, wallMs, random, nodeName } = options;
  const identity = `${Math.trunc(wallMs)}-${Math.trunc(random * 10_000)}-${driverName}`;
  return nodeName === undefined ? identity : `${identity}-${nodeName}`;
}
