/** The kinds of objects in rows. */
interface KindOfRow {
  apiVersion: string;
  kind: string;
  plural: string;
  namespaced: boolean;
}

const of = (apiVersion: string, kind: string, plural: string, namespaced: boolean): KindOfRow => ({
  apiVersion,
  kind,
  plural,
  namespaced,
});

export const kinds = {
  claim: of('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims', true),
  volume: of('v1', 'PersistentVolume', 'persistentvolumes', false),
  pod: of('v1', 'Pod', 'pods', true),
  node: of('v1', 'Node', 'nodes', false),
  event: of('v1', 'Event', 'events', true),
  secret: of('v1', 'Secret', 'secrets', true),
  namespace: of('v1', 'Namespace', 'namespaces', false),
  quota: of('v1', 'ResourceQuota', 'resourcequotas', true),
  limits: of('v1', 'LimitRange', 'limitranges', true),
  class: of('storage.k8s.io/v1', 'StorageClass', 'storageclasses', false),
  driver: of('storage.k8s.io/v1', 'CSIDriver', 'csidrivers', false),
  csiNode: of('storage.k8s.io/v1', 'CSINode', 'csinodes', false),
  attachment: of('storage.k8s.io/v1', 'VolumeAttachment', 'volumeattachments', false),
  capacity: of('storage.k8s.io/v1', 'CSIStorageCapacity', 'csistoragecapacities', true),
  attributesClass: of('storage.k8s.io/v1', 'VolumeAttributesClass', 'volumeattributesclasses', false),
  serviceAccount: of('v1', 'ServiceAccount', 'serviceaccounts', true),
  clusterRole: of('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', false),
  roleBinding: of('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings', true),
  priorityClass: of('scheduling.k8s.io/v1', 'PriorityClass', 'priorityclasses', false),
  lease: of('coordination.k8s.io/v1', 'Lease', 'leases', true),
  deployment: of('apps/v1', 'Deployment', 'deployments', true),
  daemonSet: of('apps/v1', 'DaemonSet', 'daemonsets', true),
  replicaSet: of('apps/v1', 'ReplicaSet', 'replicasets', true),
  statefulSet: of('apps/v1', 'StatefulSet', 'statefulsets', true),
  policy: of('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', false),
  policyBinding: of(
    'admissionregistration.k8s.io/v1',
    'ValidatingAdmissionPolicyBinding',
    'validatingadmissionpolicybindings',
    false,
  ),
  webhook: of(
    'admissionregistration.k8s.io/v1',
    'ValidatingWebhookConfiguration',
    'validatingwebhookconfigurations',
    false,
  ),
  snapshot: of('snapshot.storage.k8s.io/v1', 'VolumeSnapshot', 'volumesnapshots', true),
  snapshotClass: of('snapshot.storage.k8s.io/v1', 'VolumeSnapshotClass', 'volumesnapshotclasses', false),
  snapshotContent: of('snapshot.storage.k8s.io/v1', 'VolumeSnapshotContent', 'volumesnapshotcontents', false),
  grant: of('gateway.networking.k8s.io/v1beta1', 'ReferenceGrant', 'referencegrants', true),
} as const;
