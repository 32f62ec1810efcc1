/** Keys that the CSI side writes or reads; those that every provisioner has are in `provision/objects.ts`. */

/** Volume attribute: the identity of the process that provisioned it. */
export const identityKey = 'storage.kubernetes.io/csiProvisionerIdentity';

/** On a volume: the secret that its deletion needs. */
export const deletionSecretName = 'volume.kubernetes.io/provisioner-deletion-secret-name';
export const deletionSecretNamespace = 'volume.kubernetes.io/provisioner-deletion-secret-namespace';

/** On a volume: the secret for ControllerModifyVolume, read by the resizer. */
export const modifySecretName = 'volume.kubernetes.io/controller-modify-secret-name';
export const modifySecretNamespace = 'volume.kubernetes.io/controller-modify-secret-namespace';

/** On a VolumeSnapshotContent: a restore may change the volume mode. */
export const allowVolumeModeChangeKey = 'snapshot.storage.kubernetes.io/allow-volume-mode-change';

/** On a volume of the in-tree plugin for Azure Files: its resource group. */
export const azureFileResourceGroupKey = 'kubernetes.io/azure-file-resource-group';
