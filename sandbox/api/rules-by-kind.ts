import { attachmentRules, attributesClassRules, csiDriverRules, csiNodeRules, storageCapacityRules, storageClassRules } from './storage-api-rules.ts';
import { claimRules } from './claim-rules.ts';
import {
  configMapRules,
  eventRules,
  leaseRules,
  namespaceRules,
  podRules,
  rbacRules,
  secretRules,
} from './core-rules.ts';
import type { KindRules } from './kind-rules.ts';
import { volumeRules } from './volume-rules.ts';

const rules = new Map<string, KindRules>([
  ['namespaces', namespaceRules],
  ['pods', podRules],
  ['secrets', secretRules],
  ['configmaps', configMapRules],
  ['events', eventRules],
  ['persistentvolumes', volumeRules],
  ['persistentvolumeclaims', claimRules],
  ['leases.coordination.k8s.io', leaseRules],
  ['storageclasses.storage.k8s.io', storageClassRules],
  ['csidrivers.storage.k8s.io', csiDriverRules],
  ['csinodes.storage.k8s.io', csiNodeRules],
  ['volumeattachments.storage.k8s.io', attachmentRules],
  ['volumeattributesclasses.storage.k8s.io', attributesClassRules],
  ['csistoragecapacities.storage.k8s.io', storageCapacityRules],
  ['roles.rbac.authorization.k8s.io', rbacRules],
  ['rolebindings.rbac.authorization.k8s.io', rbacRules],
  ['clusterroles.rbac.authorization.k8s.io', rbacRules],
  ['clusterrolebindings.rbac.authorization.k8s.io', rbacRules],
]);

const noRules: KindRules = {};

/** The rules of the kind whose objects lie in `storage`; none for kinds the server takes as they are. */
export function rulesOf(storage: string): KindRules {
  return rules.get(storage) ?? noRules;
}
