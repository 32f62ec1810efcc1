/** Annotation keys and finalizers that provisioning reads or writes; the values are those of Kubernetes itself. */

/** On a claim: the provisioner that is to create its volume. */
export const storageProvisionerKey = 'volume.kubernetes.io/storage-provisioner';
export const betaStorageProvisionerKey = 'volume.beta.kubernetes.io/storage-provisioner';
/** On a claim (and on old volumes): the class, before `spec.storageClassName`. */
export const betaStorageClassKey = 'volume.beta.kubernetes.io/storage-class';
/** On a claim: the node that the scheduler chose. */
export const selectedNodeKey = 'volume.kubernetes.io/selected-node';
export const alphaSelectedNodeKey = 'volume.alpha.kubernetes.io/selected-node';
/** On a volume: the class's provisioner at the time. */
export const provisionedByKey = 'pv.kubernetes.io/provisioned-by';
/** On a claim or volume: the CSI driver that took over from an in-tree plugin. */
export const migratedToKey = 'pv.kubernetes.io/migrated-to';
/** Holds a volume until its storage is gone. */
export const volumeFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer';

/** Annotations that decide whether a claim is to be provisioned, for which node, and by which provisioner. */
export const decisiveAnnotationKeys = [
  storageProvisionerKey,
  betaStorageProvisionerKey,
  betaStorageClassKey,
  selectedNodeKey,
  alphaSelectedNodeKey,
  migratedToKey,
] as const;
