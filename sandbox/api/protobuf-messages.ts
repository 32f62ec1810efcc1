/**
 * Fields of the protobuf messages that clients post: `<message>: <number> <JSON name> <type>, ...`. A type is
 * a scalar, a message, a list (`[]`) or a map of texts (in braces); a `*` marks fields whose empty values count, since
 * Go holds them as pointers and leaves them out otherwise; the name `+` marks a message whose fields lie one level
 * higher in JSON. Fields that are not listed are ignored.
 *
 * @see Kubernetes, "API Concepts", "Kubernetes Protobuf encoding"; the numbers are those of the `generated.proto` files.
 */
export const protobufMessages = `
Binding: 1 metadata ObjectMeta, 2 target ObjectReference
BoundObjectReference: 1 kind string, 2 apiVersion string, 3 name string, 4 uid string
CSIPersistentVolumeSource: 1 driver string, 2 volumeHandle string, 3 readOnly bool, 4 fsType string, 5
  volumeAttributes {string}, 6 controllerPublishSecretRef SecretReference*, 7 nodeStageSecretRef
  SecretReference*, 8 nodePublishSecretRef SecretReference*, 9 controllerExpandSecretRef SecretReference*, 10
  nodeExpandSecretRef SecretReference*
CSIStorageCapacity: 1 metadata ObjectMeta, 2 nodeTopology LabelSelector*, 3 storageClassName string, 4 capacity
  quantity*, 5 maximumVolumeSize quantity*
ClusterRole: 1 metadata ObjectMeta, 2 rules PolicyRule[]
ClusterRoleBinding: 1 metadata ObjectMeta, 2 subjects Subject[], 3 roleRef RoleRef
ConfigMap: 1 metadata ObjectMeta, 4 immutable bool*, 2 data {string}, 3 binaryData {bytes}
Container: 1 name string, 2 image string, 3 command string[], 4 args string[], 6 ports ContainerPort[]
ContainerPort: 1 name string, 3 containerPort int, 4 protocol string
DeleteOptions: 1 gracePeriodSeconds int*, 2 preconditions Preconditions*, 3 orphanDependents bool*, 4
  propagationPolicy string*, 5 dryRun string[], 6 ignoreStoreReadErrorWithClusterBreakingPotential bool*
Deployment: 1 metadata ObjectMeta, 2 spec DeploymentSpec
DeploymentSpec: 1 replicas int*, 2 selector LabelSelector*, 3 template PodTemplateSpec, 5 minReadySeconds int, 6
  revisionHistoryLimit int*, 7 paused bool, 9 progressDeadlineSeconds int*
Event: 1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason string, 4 message string, 5 source
  EventSource, 6 firstTimestamp time, 7 lastTimestamp time, 8 count int, 9 type string, 10 eventTime microTime,
  11 series EventSeries*, 12 action string, 13 related ObjectReference*, 14 reportingComponent string, 15
  reportingInstance string
EventSeries: 1 count int, 2 lastObservedTime microTime
EventSource: 1 component string, 2 host string
HostPathVolumeSource: 1 path string, 2 type string*
LabelSelector: 1 matchLabels {string}, 2 matchExpressions LabelSelectorRequirement[]
LabelSelectorRequirement: 1 key string, 2 operator string, 3 values string[]
Lease: 1 metadata ObjectMeta, 2 spec LeaseSpec
LeaseSpec: 1 holderIdentity string*, 2 leaseDurationSeconds int*, 3 acquireTime microTime*, 4 renewTime
  microTime*, 5 leaseTransitions int*, 6 strategy string*, 7 preferredHolder string*
LocalObjectReference: 1 name string
LocalVolumeSource: 1 path string, 2 fsType string*
ModifyVolumeStatus: 1 targetVolumeAttributesClassName string, 2 status string
NFSVolumeSource: 1 server string, 2 path string, 3 readOnly bool
Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus
NamespaceCondition: 1 type string, 2 status string, 4 lastTransitionTime time, 5 reason string, 6 message string
NamespaceSpec: 1 finalizers string[]
NamespaceStatus: 1 phase string, 2 conditions NamespaceCondition[]
NodeSelector: 1 nodeSelectorTerms NodeSelectorTerm[]
NodeSelectorRequirement: 1 key string, 2 operator string, 3 values string[]
NodeSelectorTerm: 1 matchExpressions NodeSelectorRequirement[], 2 matchFields NodeSelectorRequirement[]
NonResourceAttributes: 1 path string, 2 verb string
ObjectMeta: 1 name string, 2 generateName string, 3 namespace string, 4 selfLink string, 5 uid string, 6
  resourceVersion string, 7 generation int, 8 creationTimestamp time, 9 deletionTimestamp time*, 10
  deletionGracePeriodSeconds int*, 11 labels {string}, 12 annotations {string}, 13 ownerReferences
  OwnerReference[], 14 finalizers string[]
ObjectReference: 1 kind string, 2 namespace string, 3 name string, 4 uid string, 5 apiVersion string, 6
  resourceVersion string, 7 fieldPath string
OwnerReference: 5 apiVersion string, 1 kind string, 3 name string, 4 uid string, 6 controller bool*, 7
  blockOwnerDeletion bool*
PersistentVolume: 1 metadata ObjectMeta, 2 spec PersistentVolumeSpec, 3 status PersistentVolumeStatus
PersistentVolumeClaim: 1 metadata ObjectMeta, 2 spec PersistentVolumeClaimSpec, 3 status
  PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: 1 type string, 2 status string, 3 lastProbeTime time, 4 lastTransitionTime time,
  5 reason string, 6 message string
PersistentVolumeClaimSpec: 1 accessModes string[], 4 selector LabelSelector*, 2 resources
  VolumeResourceRequirements, 3 volumeName string, 5 storageClassName string*, 6 volumeMode string*, 7
  dataSource TypedLocalObjectReference*, 8 dataSourceRef TypedObjectReference*, 9 volumeAttributesClassName
  string*
PersistentVolumeClaimStatus: 1 phase string, 2 accessModes string[], 3 capacity {quantity}, 4 conditions
  PersistentVolumeClaimCondition[], 5 allocatedResources {quantity}, 7 allocatedResourceStatuses {string}, 8
  currentVolumeAttributesClassName string*, 9 modifyVolumeStatus ModifyVolumeStatus*
PersistentVolumeSource: 3 hostPath HostPathVolumeSource*, 5 nfs NFSVolumeSource*, 20 local LocalVolumeSource*,
  22 csi CSIPersistentVolumeSource*
PersistentVolumeSpec: 1 capacity {quantity}, 2 + PersistentVolumeSource, 3 accessModes string[], 4 claimRef
  ObjectReference*, 5 persistentVolumeReclaimPolicy string, 6 storageClassName string, 7 mountOptions string[],
  8 volumeMode string*, 9 nodeAffinity VolumeNodeAffinity*, 10 volumeAttributesClassName string*
PersistentVolumeStatus: 1 phase string, 2 message string, 3 reason string, 4 lastPhaseTransitionTime time*
PodSpec: 2 containers Container[], 3 restartPolicy string, 7 nodeSelector {string}, 8 serviceAccountName string
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
PolicyRule: 1 verbs string[], 2 apiGroups string[], 3 resources string[], 4 resourceNames string[], 5
  nonResourceURLs string[]
Preconditions: 1 uid string*, 2 resourceVersion string*
ResourceAttributes: 1 namespace string, 2 verb string, 3 group string, 4 version string, 5 resource string, 6
  subresource string, 7 name string
ResourceQuota: 1 metadata ObjectMeta, 2 spec ResourceQuotaSpec, 3 status ResourceQuotaStatus
ResourceQuotaSpec: 1 hard {quantity}, 2 scopes string[], 3 scopeSelector ScopeSelector*
ResourceQuotaStatus: 1 hard {quantity}, 2 used {quantity}
Role: 1 metadata ObjectMeta, 2 rules PolicyRule[]
RoleBinding: 1 metadata ObjectMeta, 2 subjects Subject[], 3 roleRef RoleRef
RoleRef: 1 apiGroup string, 2 kind string, 3 name string
ScopeSelector: 1 matchExpressions ScopedResourceSelectorRequirement[]
ScopedResourceSelectorRequirement: 1 scopeName string, 2 operator string, 3 values string[]
Secret: 1 metadata ObjectMeta, 5 immutable bool*, 2 data {bytes}, 4 stringData {string}, 3 type string
SecretReference: 1 name string, 2 namespace string
SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec SelfSubjectAccessReviewSpec, 3 status
  SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: 1 resourceAttributes ResourceAttributes*, 2 nonResourceAttributes
  NonResourceAttributes*
SelfSubjectRulesReview: 1 metadata ObjectMeta, 2 spec SelfSubjectRulesReviewSpec
SelfSubjectRulesReviewSpec: 1 namespace string
SelfSubjectReview: 1 metadata ObjectMeta, 2 status SelfSubjectReviewStatus
SelfSubjectReviewStatus: 1 userInfo UserInfo
ServiceAccount: 1 metadata ObjectMeta, 2 secrets ObjectReference[], 3 imagePullSecrets LocalObjectReference[], 4
  automountServiceAccountToken bool*
StorageClass: 1 metadata ObjectMeta, 2 provisioner string, 3 parameters {string}, 4 reclaimPolicy string*, 5
  mountOptions string[], 6 allowVolumeExpansion bool*, 7 volumeBindingMode string*, 8 allowedTopologies
  TopologySelectorTerm[]
Subject: 1 kind string, 2 apiGroup string, 3 name string, 4 namespace string
SubjectAccessReviewStatus: 1 allowed bool, 4 denied bool, 2 reason string, 3 evaluationError string
TokenRequest: 1 metadata ObjectMeta, 2 spec TokenRequestSpec, 3 status TokenRequestStatus
TokenRequestSpec: 1 audiences string[], 4 expirationSeconds int*, 3 boundObjectRef BoundObjectReference*
TokenRequestStatus: 1 token string, 2 expirationTimestamp time
TopologySelectorLabelRequirement: 1 key string, 2 values string[]
TopologySelectorTerm: 1 matchLabelExpressions TopologySelectorLabelRequirement[]
TypedLocalObjectReference: 1 apiGroup string*, 2 kind string, 3 name string
TypedObjectReference: 1 apiGroup string*, 2 kind string, 3 name string, 4 namespace string*
UserInfo: 1 username string, 2 uid string, 3 groups string[]
VolumeAttachment: 1 metadata ObjectMeta, 2 spec VolumeAttachmentSpec, 3 status VolumeAttachmentStatus
VolumeAttachmentSource: 1 persistentVolumeName string*, 2 inlineVolumeSpec PersistentVolumeSpec*
VolumeAttachmentSpec: 1 attacher string, 2 source VolumeAttachmentSource, 3 nodeName string
VolumeAttachmentStatus: 1 attached bool, 2 attachmentMetadata {string}, 3 attachError VolumeError*, 4
  detachError VolumeError*
VolumeError: 1 time time, 2 message string, 3 errorCode int*
VolumeNodeAffinity: 1 required NodeSelector*
VolumeResourceRequirements: 1 limits {quantity}, 2 requests {quantity}
events.Event: 1 metadata ObjectMeta, 2 eventTime microTime, 3 series events.EventSeries*, 4 reportingController
  string, 5 reportingInstance string, 6 action string, 7 reason string, 8 regarding ObjectReference, 9 related
  ObjectReference*, 10 note string, 11 type string, 12 deprecatedSource EventSource, 13 deprecatedFirstTimestamp
  time, 14 deprecatedLastTimestamp time, 15 deprecatedCount int
events.EventSeries: 1 count int, 2 lastObservedTime microTime
`;
