/** Annotation and finalizer keys that binder, scheduler and provisioners exchange (Kubernetes, "Well-Known Labels, Annotations and Taints"). */
export const annotation = {
  /** On a claim: the provisioner that shall make its volume. */
  storageProvisioner: 'volume.kubernetes.io/storage-provisioner',
  /** The older key of the same meaning; always written together with the current one. */
  betaStorageProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
  /** On a claim: binding finished. The value means nothing. */
  bindCompleted: 'pv.kubernetes.io/bind-completed',
  /** On a claim or volume: this side of the link was set by a controller, not by a user. */
  boundByController: 'pv.kubernetes.io/bound-by-controller',
  /** On a volume: the provisioner that made it. */
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  /** On a claim: the node chosen for its first pod. */
  selectedNode: 'volume.kubernetes.io/selected-node',
  /** On a claim or volume of an in-tree driver: the CSI driver that took it over. */
  migratedTo: 'pv.kubernetes.io/migrated-to',
  /** On a claim: the class, from the time before `spec.storageClassName`; it wins over the field. */
  betaStorageClass: 'volume.beta.kubernetes.io/storage-class',
  /** On a class: `"true"` marks the default. */
  defaultClass: 'storageclass.kubernetes.io/is-default-class',
  /** The older key of the same meaning. */
  betaDefaultClass: 'storageclass.beta.kubernetes.io/is-default-class',
} as const;

/** Finalizer that keeps a claim while a scheduled pod uses it. */
export const claimProtectionFinalizer = 'kubernetes.io/pvc-protection';

/** Finalizer that keeps a volume while it is bound. */
export const volumeProtectionFinalizer = 'kubernetes.io/pv-protection';
