import { anyKindSchema, schemaOf } from './kind-schemas.ts';
import { groupVersion, type ResourceType, type ResourceTypes } from './resource-type.ts';
import type { Schema } from './schema.ts';

/** Response to `/openapi/v3`: every served group version, since kubectl asks no further for one that is missing. */
export function openApiIndex(types: ResourceTypes): object {
  const paths: Record<string, object> = {};
  for (const { group, versions } of types.groups()) {
    for (const version of versions) {
      const path = group === '' ? `api/${version}` : `apis/${group}/${version}`;
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${types.generation}` };
    }
  }
  return { paths };
}

/** The document of one group version, or `undefined` if it is not served. */
export function openApiDocument(types: ResourceTypes, group: string, version: string): object | undefined {
  const served = types.inVersion(group, version);
  if (served.length === 0) return undefined;
  const paths: Record<string, object> = {};
  const schemas: Record<string, object> = {};
  for (const type of served) {
    paths[`${basePath(group, version, type)}/{name}`] = { patch: patchOperation(group, version, type) };
    schemas[schemaName(group, version, type)] = kindSchema(group, version, type);
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes API of the sandbox', version: groupVersion(group, version) },
    paths,
    components: { schemas },
  };
}

function basePath(group: string, version: string, type: ResourceType): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  return type.namespaced ? `${root}/namespaces/{namespace}/${type.plural}` : `${root}/${type.plural}`;
}

function schemaName(group: string, version: string, type: ResourceType): string {
  return `${group === '' ? 'core' : group}.${version}.${type.kind}`;
}

/** That `fieldValidation` is offered makes kubectl leave the checking of fields to us. */
function patchOperation(group: string, version: string, type: ResourceType): object {
  const parameter = (name: string, kind: 'string' | 'boolean'): object => ({
    name,
    in: 'query',
    schema: { type: kind, uniqueItems: true },
  });
  return {
    'x-kubernetes-action': 'patch',
    'x-kubernetes-group-version-kind': { group, version, kind: type.kind },
    parameters: [
      parameter('dryRun', 'string'),
      parameter('fieldManager', 'string'),
      parameter('fieldValidation', 'string'),
      parameter('force', 'boolean'),
    ],
    responses: {
      200: {
        description: 'OK',
        content: {
          'application/json': { schema: { $ref: `#/components/schemas/${schemaName(group, version, type)}` } },
        },
      },
    },
  };
}

function kindSchema(group: string, version: string, type: ResourceType): object {
  const storedGroup = type.storedApiVersion.includes('/') ? group : '';
  const known = schemaOf(type.kind, storedGroup) ?? {
    fields: { apiVersion: 'string', kind: 'string', ...anyKindSchema.fields, spec: 'any', status: 'any' } as const,
  };
  return {
    ...describe(known, type.kind, []),
    description: describeKind(type.kind, groupVersion(group, version)),
    'x-kubernetes-group-version-kind': [{ group, version, kind: type.kind }],
  };
}

function describe(schema: Schema, kind: string, path: readonly string[]): object {
  if (typeof schema !== 'string') {
    if ('optional' in schema) return describe(schema.optional, kind, path);
    if ('list' in schema) return { type: 'array', items: describe(schema.list, kind, path) };
    if ('map' in schema) return { type: 'object', additionalProperties: describe(schema.map, kind, path) };
    const properties = Object.entries(schema.fields).map(([field, part]) => {
      const inner = [...path, field];
      return [field, { ...describe(part, kind, inner), description: describeField(kind, inner) }] as const;
    });
    return { type: 'object', properties: Object.fromEntries(properties) };
  }
  switch (schema) {
    case 'integer':
      return { type: 'integer', format: 'int64' };
    case 'int32':
      return { type: 'integer', format: 'int32' };
    case 'number':
      return { type: 'number' };
    case 'boolean':
      return { type: 'boolean' };
    case 'time':
      return { type: 'string', format: 'date-time' };
    case 'intOrString':
      return { 'x-kubernetes-int-or-string': true };
    case 'any':
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    case 'string':
    case 'quantity':
      return { type: 'string' };
  }
}

/** What kinds are, for `kubectl explain`. */
const kinds: Readonly<Record<string, string>> = {
  PersistentVolume: 'A volume of the cluster: storage that exists, made by a provisioner or by hand.',
  PersistentVolumeClaim: 'A claim asks for storage; it is bound to the volume that fulfils it.',
  StorageClass: 'How volumes are made for the claims that name the class: by which driver, and with which parameters.',
  CSIDriver: 'What the cluster has to know of a CSI driver. The name of the object is that of the driver.',
  CSINode: 'The CSI drivers on a node. csi-sandbox makes it of NodeGetInfo, as a kubelet does.',
  CSIStorageCapacity: 'How much room there is for volumes of a class in one topology segment.',
  VolumeAttachment: 'That a volume is, or shall be, attached to a node. Nothing in the sandbox attaches volumes.',
  VolumeAttributesClass: 'Parameters of volumes that can be changed while they exist.',
  VolumeSnapshot: 'A request for a snapshot of a claim, or the use of one that exists.',
  VolumeSnapshotContent: 'A snapshot in the storage system. Nothing in the sandbox takes snapshots by itself.',
  VolumeSnapshotClass: 'How snapshots are taken for those that name the class.',
  ReferenceGrant: 'Permission for objects of other namespaces to refer to objects of this one.',
  Pod: 'A pod. The sandbox schedules it and marks it as running; no container is started.',
  Node: 'A node. The nodes of the sandbox are objects without a machine.',
  Namespace: 'A namespace; deleting it deletes what is in it.',
  Event: 'What happened to an object, and how often.',
  Lease: 'A lock that is renewed; leader election uses it.',
  Secret: 'Passwords and keys, base64-encoded.',
  ConfigMap: 'Settings as plain text.',
  ServiceAccount: 'An identity for programs; kubectl create token issues a token for it.',
};

const unused = 'The sandbox keeps this field and does nothing with it.';
const secretFor = (call: string): string => `Secret whose values the driver gets with ${call}.`;

/** What fields are, by their name; where one name means several things, also with the path behind the kind. */
const fields: Readonly<Record<string, string>> = {
  apiVersion: 'Group and version of the kind, such as storage.k8s.io/v1.',
  kind: 'The kind of the object.',
  metadata: 'Name, namespace, labels and what else all kinds have in common.',
  spec: 'What is wanted.',
  status: 'What is the case; written by controllers.',
  name: 'Name of the object, unique for its kind and namespace.',
  generateName: 'Beginning of a name that the server completes, if there is no name.',
  namespace: 'Namespace of the object.',
  uid: 'Identity of the object; one of the same name made later has another.',
  resourceVersion: 'Version of the object; a write that names an older one is refused.',
  generation: 'Number of the changes to what is wanted.',
  creationTimestamp: 'When the object was created.',
  deletionTimestamp: 'When deletion was asked for; the object goes once its finalizers are gone.',
  deletionGracePeriodSeconds: 'Seconds a pod may still run after its deletion.',
  labels: 'Keys and values that selectors look for.',
  annotations: 'Keys and values for programs and people.',
  ownerReferences: 'Objects this one belongs to; it is deleted after the last of them.',
  finalizers: 'Who has something to do before the object may go.',
  'PersistentVolume.spec.capacity': 'Size of the volume, as storage.',
  'PersistentVolumeClaim.status.capacity': 'Size of the bound volume, as storage.',
  capacity: 'Room for volumes in the segment, as GetCapacity reports it.',
  csi: 'The volume of a CSI driver.',
  driver: 'Name of the CSI driver.',
  driverName: 'Name of the CSI driver.',
  volumeHandle: 'The id of the volume, as CreateVolume returned it.',
  readOnly: 'Whether the volume is only to be read.',
  fsType: 'File system to make on the volume, if the driver makes one.',
  volumeAttributes: 'The volume context that CreateVolume returned.',
  controllerPublishSecretRef: secretFor('ControllerPublishVolume'),
  nodeStageSecretRef: secretFor('NodeStageVolume'),
  nodePublishSecretRef: secretFor('NodePublishVolume'),
  controllerExpandSecretRef: secretFor('ControllerExpandVolume'),
  nodeExpandSecretRef: secretFor('NodeExpandVolume'),
  hostPath: 'A directory of the node.',
  nfs: 'A directory of an NFS server.',
  local: 'A disk or directory of one node.',
  path: 'Where the directory or file is.',
  server: 'Name or address of the server.',
  accessModes: 'How nodes may mount it: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod.',
  claimRef: 'The claim that the volume is bound to, or reserved for.',
  persistentVolumeReclaimPolicy: 'What happens to the volume when its claim is gone: Delete or Retain.',
  reclaimPolicy: 'The reclaim policy of volumes of the class: Delete, which is the default, or Retain.',
  storageClassName: 'Name of the StorageClass. Without one, a claim gets the default class; "" stands for none.',
  mountOptions: 'Options for mounting the volume.',
  volumeMode: 'Filesystem, which is the default, or Block.',
  nodeAffinity: 'Which nodes can reach the volume.',
  required: 'What must hold for a node.',
  nodeSelectorTerms: 'Terms of which one must hold.',
  matchExpressions: 'Requirements for labels, all of which must hold.',
  matchFields: 'Requirements for fields of the node, all of which must hold.',
  matchLabels: 'Labels that must have these values.',
  matchLabelExpressions: 'Requirements for topology labels, all of which must hold.',
  key: 'The key of the label.',
  operator: 'How key and values are compared: In, NotIn, Exists, DoesNotExist, Gt, Lt.',
  values: 'Values to compare with.',
  volumeAttributesClassName: 'Name of the VolumeAttributesClass that is wanted.',
  currentVolumeAttributesClassName: 'Name of the VolumeAttributesClass that the volume has.',
  phase: 'Where the object is in its life.',
  message: 'What happened, for people.',
  reason: 'What happened, in one word for programs.',
  lastPhaseTransitionTime: 'When the phase changed last.',
  selector: 'Labels that a volume must have to be bound.',
  resources: 'How much is wanted.',
  requests: 'The least that is wanted; for a claim, storage. A bound claim may raise it if its class allows expansion.',
  limits: 'The most that is wanted.',
  volumeName: 'Name of the volume that the claim is bound to; set beforehand, only this one is taken.',
  dataSource: 'A snapshot or claim that the new volume is filled from.',
  dataSourceRef: 'As dataSource, also for other kinds and namespaces.',
  apiGroup: 'API group of the kind; empty for the core group.',
  conditions: 'What else is the case, by type.',
  allocatedResources: 'Size that an expansion has reached.',
  allocatedResourceStatuses: 'How far an expansion is.',
  provisioner: 'Name of the driver that makes volumes of the class.',
  parameters: 'Parameters for the driver; keys with csi.storage.k8s.io/ are for the sidecar.',
  allowVolumeExpansion: 'Whether bound claims of the class may ask for more.',
  volumeBindingMode:
    'When a volume is made: Immediate, which is the default, or WaitForFirstConsumer, with the first pod that uses it.',
  allowedTopologies: 'Topology segments that volumes of the class may be in.',
  attachRequired: 'Whether volumes must be attached to a node before they are mounted.',
  podInfoOnMount: 'Whether the driver is told the pod with NodePublishVolume.',
  volumeLifecycleModes: 'Persistent, Ephemeral or both.',
  storageCapacity: 'Whether the scheduler looks at CSIStorageCapacity objects of the driver.',
  fsGroupPolicy: 'Whether the group of files on the volume is changed for a pod.',
  tokenRequests: 'Service account tokens that the driver gets with NodePublishVolume.',
  requiresRepublish: 'Whether NodePublishVolume is called again and again.',
  seLinuxMount: 'Whether volumes may be mounted with an SELinux context.',
  drivers: 'The drivers on the node.',
  'CSINode.spec.drivers.name': 'Name of the CSI driver.',
  nodeID: 'The id of the node, as NodeGetInfo returned it.',
  topologyKeys: 'Keys of the node labels that make up the topology of the driver.',
  allocatable: 'Volumes of the driver that the node can have at most.',
  count: 'How many.',
  attacher: 'Name of the driver that attaches the volume.',
  'VolumeAttachment.spec.source': 'The volume to attach.',
  persistentVolumeName: 'Name of the PersistentVolume.',
  nodeName: 'Name of the node; a pod gets it from the scheduler.',
  attached: 'Whether the volume is attached.',
  attachError: 'Why it could not be attached.',
  detachError: 'Why it could not be detached.',
  nodeTopology: 'The segment: labels that its nodes have. Without it, no node is in it.',
  maximumVolumeSize: 'Size of the largest volume that there is room for.',
  source: 'What the snapshot is taken of, or where it comes from.',
  persistentVolumeClaimName: 'Name of the claim to take a snapshot of.',
  volumeSnapshotContentName: 'Name of the VolumeSnapshotContent that exists already.',
  volumeSnapshotClassName: 'Name of the VolumeSnapshotClass.',
  boundVolumeSnapshotContentName: 'Name of the VolumeSnapshotContent that the snapshot is bound to.',
  creationTime: 'When the storage system took the snapshot.',
  readyToUse: 'Whether volumes can be made of the snapshot.',
  restoreSize: 'The least size of a volume that is made of the snapshot.',
  error: 'Why it did not work.',
  volumeSnapshotRef: 'The VolumeSnapshot that the content is bound to.',
  deletionPolicy: 'What happens to the snapshot when its VolumeSnapshot is gone: Delete or Retain.',
  snapshotHandle: 'The id of the snapshot, as CreateSnapshot returned it.',
  sourceVolumeMode: 'Mode of the volume the snapshot was taken of.',
  from: 'Who may refer: kinds and namespaces.',
  to: 'What may be referred to.',
  group: 'API group.',
  containers: 'The containers of the pod. None of them is started.',
  volumes: 'Volumes of the pod; those of claims make the scheduler wait for them.',
  persistentVolumeClaim: 'A claim of the same namespace.',
  nodeSelector: 'Labels that a node must have for the pod.',
  tolerations: 'Taints of nodes that do not keep the pod away.',
  taints: 'What keeps pods without a toleration away from the node.',
  schedulerName: 'Which scheduler places the pod; the sandbox plays default-scheduler.',
  schedulingGates: 'While there are any, the pod is not scheduled.',
  unschedulable: 'Whether no more pods come to the node.',
  holderIdentity: 'Who holds the lease.',
  leaseDurationSeconds: 'Seconds after which a lease that was not renewed may be taken.',
  acquireTime: 'When the holder got the lease.',
  renewTime: 'When the holder renewed the lease.',
  leaseTransitions: 'How often the lease changed hands.',
  data: 'The entries.',
  stringData: 'Entries as plain text; the server adds them to data.',
  type: 'One word for what it is.',
  involvedObject: 'The object the event is about.',
  firstTimestamp: 'When it happened first.',
  lastTimestamp: 'When it happened last.',
};

/** The description of a kind; its name for one that has none. */
function describeKind(kind: string, apiVersion: string): string {
  return kinds[kind] ?? `${kind} of ${apiVersion}. ${unused.replace('field', 'kind')}`;
}

/** The description of a field. @param path - the names of the fields around it and its own. */
function describeField(kind: string, path: readonly string[]): string {
  return fields[[kind, ...path].join('.')] ?? fields[path.at(-1) ?? ''] ?? unused;
}
