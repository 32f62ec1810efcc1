import { ProvisionError } from '../../provision/provisioner.ts';

/**
 * Builds the name sent to the driver, which is also the PersistentVolume's. The same claim always gives the same name, so a
 * repeated CreateVolume finds the volume of an earlier, timed-out call (CSI spec, `CreateVolume`, field `name`).
 *
 * @param uidLength - characters of the UID to keep, dashes removed (0 to 32); -1 keeps it whole, with its dashes.
 * @throws {ProvisionError} as `checkVolumeName`.
 */
export function volumeName(prefix: string, claimUid: string | undefined, uidLength: number): string {
  checkVolumeName(prefix, claimUid, uidLength);
  if (uidLength === -1) return `${prefix}-${claimUid}`;
  return `${prefix}-${claimUid.replaceAll('-', '').slice(0, uidLength)}`;
}

/** @throws {ProvisionError} state `finished` for an empty prefix, a claim without UID or a length out of range. */
export function checkVolumeName(
  prefix: string,
  claimUid: string | undefined,
  uidLength: number,
): asserts claimUid is string {
  if (prefix === '') throw new ProvisionError('volume name prefix cannot be of length 0', { state: 'finished' });
  if (claimUid === undefined || claimUid === '') {
    throw new ProvisionError('corrupted PVC object, it is missing UID', { state: 'finished' });
  }
  if (uidLength === -1) return;
  const { length } = claimUid.replaceAll('-', '');
  if (!Number.isInteger(uidLength) || uidLength < 0 || uidLength > length) {
    throw new ProvisionError(
      `volume name UUID length ${uidLength} is out of range: a claim UID has ${length} characters without dashes`,
      { state: 'finished' },
    );
  }
}
