/** The claim's VolumeAttributesClass does not exist, is not served, is for another driver, or differs from its volume's. */
import { found } from '../cluster-reader.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { isInTree } from '../provisioner-facts.ts';
import { defineCause } from './cause.ts';

const missingCure = 'Create it, or recreate the claim without spec.volumeAttributesClassName';
const offCure = 'Recreate the claim without spec.volumeAttributesClassName, or enable the VolumeAttributesClass API';
const driverCure = 'Recreate the claim with a VolumeAttributesClass of its driver';

export const attributesClass = defineCause({
  name: 'attributes-class',
  failures: [
    { pattern: /^VAC .* does not match driver name/, cure: driverCure },
    {
      pattern: /volumeattributesclass.* is forbidden/s,
      cure: 'Permit the provisioner to get VolumeAttributesClasses: its log has the rule to add',
    },
    {
      pattern: /MODIFY_VOLUME/,
      cure: 'Recreate the claim without spec.volumeAttributesClassName: the driver supports no attributes classes',
    },
    { pattern: /was saved without its volume attributes class /, cure: offCure },
    { pattern: /volumeattributesclass/, cure: missingCure },
  ],
});

/** The binder does not bind a volume with another attributes class. */
export function checkAttributesBind({ claim, volume }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if (existing === undefined || existing.metadata.deletionTimestamp !== undefined) return undefined;
  if ((claim.spec.volumeAttributesClassName ?? '') === (existing.spec.volumeAttributesClassName ?? ''))
    return undefined;
  return {
    state: 'stuck',
    cause: 'attributes-class',
    message: `PersistentVolume ${existing.metadata.name} exists for the claim, and kube-controller-manager has not bound them yet. Their volumeAttributesClassName differs, so they will not be bound.`,
    cure: offCure,
  };
}

export function checkAttributesClass({ claim, storageClass, attributesClass }: ClaimFacts): Finding | undefined {
  if (attributesClass === undefined) return undefined;
  const name = claim.spec.volumeAttributesClassName ?? '';
  const driver = provisionerOf(claim, found(storageClass));
  if (attributesClass.kind === 'unreadable') return { state: 'unknown', detail: attributesClass.why };
  const held = { state: 'stuck', cause: 'attributes-class' } as const;
  if (attributesClass.kind === 'missing') {
    return {
      ...held,
      message: attributesClass.unserved
        ? `The claim names VolumeAttributesClass ${name}, and the API server does not serve this kind.`
        : `VolumeAttributesClass ${name} does not exist.`,
      cure: missingCure,
    };
  }
  const { driverName = '' } = attributesClass.value;
  if (driverName === driver || driver === '' || isInTree(driver)) return { state: 'ok', detail: `${name} exists` };
  return {
    ...held,
    message: `VolumeAttributesClass ${name} is for driver ${driverName}, and the claim is for driver ${driver}.`,
    cure: driverCure,
  };
}
