import { capacityText } from '../../base/quantity.ts';
import type { CsiVolumeSource, NodeSelectorTerm, PersistentVolume, SecretReference } from '../../provision/objects.ts';
import { identityKey } from '../identity.ts';
import type { Topology__Output } from '../generated/csi/v1/Topology.ts';
import type { Volume__Output } from '../generated/csi/v1/Volume.ts';
import type { SecretReferences, VolumePlan } from './volume-plan.ts';

/** On a volume: the secret that its deletion needs. */
export const deletionSecretName = 'volume.kubernetes.io/provisioner-deletion-secret-name';
export const deletionSecretNamespace = 'volume.kubernetes.io/provisioner-deletion-secret-namespace';

/** On a volume: the secret for ControllerModifyVolume, read by the resizer. */
const modifySecretName = 'volume.kubernetes.io/controller-modify-secret-name';
const modifySecretNamespace = 'volume.kubernetes.io/controller-modify-secret-namespace';

/** A volume the driver made. */
export interface CreatedVolume {
  volume: Volume__Output;
  volumeId: string;
  /** As the driver reports it, else as requested. */
  capacityBytes: bigint;
}

/**
 * The PersistentVolume for a volume the driver made, without what the controller adds before it saves it (claim
 * reference, class name, provisioned-by annotation, finalizer).
 */
export function persistentVolume(
  settings: { driverName: string; identity: string; controllerPublishReadOnly: boolean },
  plan: VolumePlan,
  created: CreatedVolume,
): PersistentVolume {
  const { request, secretReferences, spec, topologySupported } = plan;
  const affinity = topologySupported ? nodeAffinity(created.volume.accessible_topology ?? []) : undefined;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: request.name, annotations: secretAnnotations(secretReferences) },
    spec: {
      ...spec,
      capacity: { storage: capacityText(created.capacityBytes) },
      csi: csiSource(settings, plan, created),
      ...(affinity !== undefined && { nodeAffinity: affinity }),
    },
  };
}

/** Both deletion keys are always set: empty ones keep a later deletion from reading the class. */
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
  { fsType, secretReferences, spec: { accessModes = [] } }: VolumePlan,
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

/**
 * Where a volume can be used: one term per topology of the driver's response, in its order, one requirement per segment.
 * Topologies without segments are skipped; a repeated one is kept (CSI spec, `Volume.accessible_topology`).
 */
export function nodeAffinity(topologies: readonly Topology__Output[]): PersistentVolume['spec']['nodeAffinity'] {
  if (topologies.length === 0) return undefined;
  const nodeSelectorTerms: NodeSelectorTerm[] = [];
  for (const { segments = {} } of topologies) {
    const matchExpressions = Object.entries(segments).map(([key, value]) => ({ key, operator: 'In', values: [value] }));
    if (matchExpressions.length > 0) nodeSelectorTerms.push({ matchExpressions });
  }
  return { required: { nodeSelectorTerms } };
}
