import { capacityText } from '../base/quantity.ts';
import type { CsiVolumeSource, PersistentVolume, SecretReference } from '../provision/objects.ts';
import type { ProvisionOptions } from '../provision/provisioner.ts';
import type { CreatedVolume } from './check-response.ts';
import {
  identityKey,
  deletionSecretName,
  deletionSecretNamespace,
  modifySecretName,
  modifySecretNamespace,
} from './annotation-keys.ts';
import { nodeAffinity } from './topology/node-affinity.ts';
import type { PreparedVolume, SecretReferences } from './prepare-volume.ts';

/**
 * The PersistentVolume for a volume the driver made, without what the controller adds when it saves it (claim
 * reference, class name, provisioned-by annotation, finalizer).
 */
export function persistentVolume(
  settings: { driverName: string; identity: string; controllerPublishReadOnly: boolean },
  { claim, storageClass }: ProvisionOptions,
  prepared: PreparedVolume,
  created: CreatedVolume,
): PersistentVolume {
  const { accessModes, volumeMode } = claim.spec;
  const { mountOptions = [], reclaimPolicy } = storageClass;
  const affinity = prepared.topologySupported ? nodeAffinity(created.volume.accessible_topology ?? []) : undefined;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: prepared.name, annotations: secretAnnotations(prepared.secretReferences) },
    spec: {
      ...(accessModes === undefined ? {} : { accessModes: [...accessModes] }),
      capacity: { storage: capacityText(created.capacityBytes) },
      csi: csiSource(settings, accessModes, prepared, created),
      ...(mountOptions.length === 0 ? {} : { mountOptions: [...mountOptions] }),
      ...(affinity === undefined ? {} : { nodeAffinity: affinity }),
      ...(reclaimPolicy === undefined ? {} : { persistentVolumeReclaimPolicy: reclaimPolicy }),
      ...(prepared.volumeAttributesClassName === undefined
        ? {}
        : { volumeAttributesClassName: prepared.volumeAttributesClassName }),
      ...(volumeMode === undefined ? {} : { volumeMode }),
    },
  };
}

/** Both deletion keys are always there: empty ones tell a later deletion not to ask the class. */
function secretAnnotations({ provisioner, controllerModify }: SecretReferences): Record<string, string> {
  return {
    [deletionSecretName]: provisioner?.name ?? '',
    [deletionSecretNamespace]: provisioner?.namespace ?? '',
    ...(controllerModify === undefined
      ? {}
      : { [modifySecretName]: controllerModify.name, [modifySecretNamespace]: controllerModify.namespace }),
  };
}

function csiSource(
  settings: { driverName: string; identity: string; controllerPublishReadOnly: boolean },
  accessModes: readonly string[] = [],
  { fsType, secretReferences }: PreparedVolume,
  { volume, volumeId }: CreatedVolume,
): CsiVolumeSource {
  const readOnly = settings.controllerPublishReadOnly && accessModes.length === 1 && accessModes[0] === 'ReadOnlyMany';
  const { controllerPublish, nodeStage, nodePublish, controllerExpand, nodeExpand } = secretReferences;
  const secretRefs = {
    controllerPublishSecretRef: controllerPublish,
    nodeStageSecretRef: nodeStage,
    nodePublishSecretRef: nodePublish,
    controllerExpandSecretRef: controllerExpand,
    nodeExpandSecretRef: nodeExpand,
  };
  return {
    driver: settings.driverName,
    volumeHandle: volumeId,
    ...(fsType === '' ? {} : { fsType }),
    ...(readOnly ? { readOnly } : {}),
    // The driver's own context wins, also over our key.
    volumeAttributes: { [identityKey]: settings.identity, ...volume.volume_context },
    ...(Object.fromEntries(Object.entries(secretRefs).filter(([, reference]) => reference !== undefined)) as Record<
      keyof typeof secretRefs,
      SecretReference
    >),
  };
}
