import { quantityBytes } from '../../base/quantity.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';

/**
 * The bytes a claim requests, fractions rounded up; 0 when it requests none. `resources.limits` does not count.
 *
 * @throws {QuantityError} when the request is no quantity.
 */
export function storageRequestBytes(claim: PersistentVolumeClaim): bigint {
  return quantityBytes(claim.spec.resources?.requests?.['storage'] ?? 0);
}
