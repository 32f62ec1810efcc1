/** Volume attribute: the identity of the process that provisioned it. */
export const identityKey = 'storage.kubernetes.io/csiProvisionerIdentity';

/**
 * The identity of this process: `<milliseconds>-<0..9999>-<driver>`, in node deployment plus `-<node>`. Computed
 * once at start.
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

/**
 * The node that is named in the identity on a volume.
 *
 * @returns an empty string for a volume of a central deployment, undefined for an identity of another
 * form, such as one of another driver.
 */
export function nodeOfIdentity(identity: string | undefined, driverName: string): string | undefined {
  const maker = /^\d+-\d+-(.*)$/s.exec(identity ?? '')?.[1];
  if (maker === driverName) return '';
  return maker?.startsWith(`${driverName}-`) === true ? maker.slice(driverName.length + 1) : undefined;
}
