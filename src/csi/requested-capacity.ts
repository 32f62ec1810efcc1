import { quantityBytes } from '../base/quantity.ts';
import type { PersistentVolumeClaim } from '../provision/objects.ts';

/**
 * The bytes a claim asks for, fractions rounded up; 0 when it asks for none. `resources.limits` is not looked at.
 *
 * @throws {QuantityError} when the request is no quantity.
 */
export function storageRequestBytes(claim: PersistentVolumeClaim): bigint {
  return quantityBytes(claim.spec.resources?.requests?.['storage'] ?? 0);
}
