import type { SandboxObject } from './client.ts';
import { parameters, provisionerName } from './driver-name-rules.ts';
import { ifFilled, oneOf } from './field-checks.ts';
import { immutableFields } from './immutable-fields.ts';
import type { KindRules } from './kind-rules.ts';
import { topologies } from './selector-rules.ts';

/** Defaults and checks of StorageClass. */
export const storageClassRules: KindRules = {
  complete: defaultClass,
  validate: (storageClass) => [
    ...provisionerName(storageClass['provisioner'], 'provisioner'),
    ...parameters(storageClass['parameters'], 'parameters'),
    ...ifFilled(oneOf('Delete', 'Retain'))(storageClass['reclaimPolicy'], 'reclaimPolicy'),
    ...oneOf('Immediate', 'WaitForFirstConsumer')(storageClass['volumeBindingMode'], 'volumeBindingMode'),
    ...topologies(storageClass['allowedTopologies'], 'allowedTopologies'),
  ],
  validateUpdate: (storageClass, old) =>
    immutableFields(storageClass, old, ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode']),
};

function defaultClass(storageClass: SandboxObject): void {
  storageClass['reclaimPolicy'] ??= 'Delete';
  storageClass['volumeBindingMode'] ??= 'Immediate';
}
