/** Objects of every kind that is read as protobuf, with all fields of all sources: what a coding could get wrong. */
import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import { apiVersion, type KubeObject, type Resource } from '../../src/kube/kube-object.ts';
import type { MessageName } from '../../src/kube/protobuf/message-decoder.ts';
import { volumeAttachments } from '../../src/csi/attachments.ts';
import { csiNodeResource, nodeResource } from '../../src/csi/topology/topology-nodes.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '../../src/provision/objects.ts';

/** A kind that is read as protobuf. */
export interface CodedKind {
  resource: Resource;
  message: MessageName;
  /** Fields of the object in JSON that no message has. */
  unread?: readonly string[];
  /** To be created, each with the status that it gets then. */
  objects: readonly CodedObject[];
}

export interface CodedObject {
  object: KubeObject & Record<string, unknown>;
  status?: object;
}

/** The driver of the objects that a provisioner would own. */
export const codedDriver = 'coded.csi.example.com';

const secretRef = { name: 's', namespace: 'ns' };

/** One of each, every field set; then, where it makes a difference, again with as little as can be. */
const sources: readonly Record<string, object>[] = [
  { csi: { driver: codedDriver, volumeHandle: 'h' } },
  {
    csi: {
      driver: codedDriver,
      volumeHandle: 'h/é/日本',
      readOnly: true,
      fsType: 'xfs',
      volumeAttributes: { a: 'b', empty: '', ['__proto__']: 'own', constructor: 'own' },
      controllerPublishSecretRef: secretRef,
      nodeStageSecretRef: { ...secretRef, name: 't' },
      nodePublishSecretRef: { ...secretRef, name: 'u' },
      controllerExpandSecretRef: { ...secretRef, name: 'v' },
      nodeExpandSecretRef: { ...secretRef, name: 'w' },
    },
  },
  { gcePersistentDisk: { pdName: 'd', fsType: 'ext4', partition: 3, readOnly: true } },
  { awsElasticBlockStore: { volumeID: 'vol-1', fsType: 'ext4', partition: 3, readOnly: true } },
  { hostPath: { path: '/a', type: 'DirectoryOrCreate' } },
  { hostPath: { path: '/a' } },
  { glusterfs: { endpoints: 'e', path: 'p', readOnly: true, endpointsNamespace: 'ns' } },
  { nfs: { server: 's', path: '/p', readOnly: true } },
  {
    rbd: {
      monitors: ['m', 'n'],
      image: 'i',
      fsType: 'f',
      pool: 'p',
      user: 'u',
      keyring: '/k',
      secretRef,
      readOnly: true,
    },
  },
  {
    iscsi: {
      targetPortal: '192.0.2.1:3260',
      iqn: 'iqn.2001-04.com.example:storage',
      lun: 7,
      iscsiInterface: 'eth0',
      fsType: 'f',
      readOnly: true,
      portals: ['192.0.2.2', '192.0.2.3'],
      chapAuthDiscovery: true,
      chapAuthSession: true,
      secretRef,
      initiatorName: 'iqn.2001-04.com.example:client',
    },
  },
  { iscsi: { targetPortal: '192.0.2.1', iqn: 'iqn.2001-04.com.example:storage', lun: 0 } },
  { cinder: { volumeID: 'v', fsType: 'f', readOnly: true, secretRef } },
  { cephfs: { monitors: ['m'], path: '/p', user: 'u', secretFile: '/f', secretRef, readOnly: true } },
  { fc: { targetWWNs: ['w', 'x'], lun: 0, fsType: 'f', readOnly: true } },
  { fc: { wwids: ['y'] } },
  { flocker: { datasetName: 'd' } },
  { flocker: { datasetUUID: '11111111-2222-3333-4444-555555555555' } },
  { flexVolume: { driver: 'a/b', fsType: 'f', secretRef, readOnly: true, options: { a: 'b' } } },
  { azureFile: { secretName: 's', shareName: 't', readOnly: true, secretNamespace: 'ns' } },
  { azureFile: { secretName: 's', shareName: 't' } },
  { vsphereVolume: { volumePath: 'p', fsType: 'f', storagePolicyName: 'n', storagePolicyID: 'i' } },
  { quobyte: { registry: 'r:1', volume: 'v', readOnly: true, user: 'u', group: 'g', tenant: 't' } },
  {
    azureDisk: {
      diskName: 'd',
      diskURI: '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d',
      cachingMode: 'None',
      fsType: 'f',
      readOnly: true,
      kind: 'Managed',
    },
  },
  { photonPersistentDisk: { pdID: 'p', fsType: 'f' } },
  { portworxVolume: { volumeID: 'v', fsType: 'f', readOnly: true } },
  {
    scaleIO: {
      gateway: 'g',
      system: 's',
      secretRef,
      sslEnabled: true,
      protectionDomain: 'd',
      storagePool: 'p',
      storageMode: 'ThinProvisioned',
      volumeName: 'v',
      fsType: 'f',
      readOnly: true,
    },
  },
  { local: { path: '/l', fsType: 'f' } },
  {
    storageos: {
      volumeName: 'v',
      volumeNamespace: 'n',
      fsType: 'f',
      readOnly: true,
      secretRef: { kind: 'Secret', apiVersion: 'v1', ...secretRef, uid: 'u', resourceVersion: '1', fieldPath: 'f' },
    },
  },
];

const nodeAffinity = {
  required: {
    nodeSelectorTerms: [
      {
        matchExpressions: [
          { key: 'zone', operator: 'In', values: ['a', 'b'] },
          { key: 'disk', operator: 'Exists' },
        ],
      },
      { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] },
    ],
  },
};

/** Namespace of the claims. */
export const codedNamespace = 'default';

/** @param prefix - of all names. */
export function codedKinds(prefix: string): CodedKind[] {
  const metadata = (name: string, more: object = {}): KubeObject['metadata'] => ({
    name: `${prefix}-${name}`,
    labels: { 'app.kubernetes.io/name': name, empty: '' },
    ...more,
  });
  return [
    { resource: persistentVolumes, message: 'PersistentVolume', objects: volumes(metadata) },
    { resource: persistentVolumeClaims, message: 'PersistentVolumeClaim', objects: claims(metadata) },
    { resource: storageClasses, message: 'StorageClass', objects: classes(metadata) },
    { resource: nodeResource, message: 'Node', unread: ['spec', 'status'], objects: nodes(metadata) },
    { resource: csiNodeResource, message: 'CSINode', objects: csiNodes(metadata) },
    { resource: volumeAttachments, message: 'VolumeAttachment', objects: attachments(metadata) },
  ];
}

/** Creates the objects of a kind, with their status. @throws {ApiError} */
export async function createCoded(client: KubeClient, { resource, objects }: CodedKind): Promise<void> {
  for (const { object, status } of objects) {
    await client.create(resource, { apiVersion: apiVersion(resource), kind: resource.kind, ...object });
    if (status === undefined) continue;
    const where = { namespace: codedNamespace, name: object.metadata.name };
    await client.patch(resource, where, { type: 'merge', body: { status } }, { subresource: 'status' });
  }
}

type MakeMetadata = (name: string, more?: object) => KubeObject['metadata'];

function volumes(metadata: MakeMetadata): CodedObject[] {
  const least = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'c' };
  const owned = {
    annotations: {
      'pv.kubernetes.io/provisioned-by': codedDriver,
      'example.com/empty': '',
      'example.com/note': 'é 日本',
    },
    finalizers: ['example.com/a', 'example.com/b'],
  };
  const all = {
    capacity: { storage: '1536Mi' },
    accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
    storageClassName: 'c',
    persistentVolumeReclaimPolicy: 'Delete',
    mountOptions: ['hard', 'nfsvers=4.1'],
    volumeMode: 'Block',
    nodeAffinity,
    volumeAttributesClassName: 'gold',
    claimRef: {
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      namespace: 'elsewhere',
      name: 'c',
      uid: 'u',
      resourceVersion: '1',
    },
    csi: { driver: codedDriver, volumeHandle: 'all' },
  };
  const phases = ['Available', 'Bound', 'Released', 'Failed'].map((phase) => ({
    object: { metadata: metadata(`all-${phase.toLowerCase()}`, owned), spec: all },
    status: {
      phase,
      reason: phase === 'Failed' ? 'Because' : undefined,
      message: phase === 'Failed' ? 'why' : undefined,
    },
  }));
  return [
    ...phases,
    ...sources.map((source, index) => ({
      object: {
        metadata: metadata(`source-${index}`, index % 2 === 0 ? owned : {}),
        spec: { ...least, ...('local' in source && { nodeAffinity }), ...source },
      },
    })),
  ];
}

function claims(metadata: MakeMetadata): CodedObject[] {
  const resources = { requests: { storage: '1Gi' } };
  const make = (name: string, spec: object, more: object = {}): CodedObject['object'] => ({
    metadata: { namespace: codedNamespace, ...metadata(name, more) },
    spec: { accessModes: ['ReadWriteOnce'], resources, ...spec },
  });
  const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' };
  const bound = { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } };
  return [
    { object: make('least', {}) },
    { object: make('no-class', { storageClassName: '' }) },
    {
      object: make(
        'pending',
        {
          storageClassName: 'c',
          volumeMode: 'Block',
          volumeAttributesClassName: 'gold',
          resources: { requests: { storage: '2.5G' }, limits: { storage: '3e9' } },
          selector: {
            matchLabels: { a: 'b' },
            matchExpressions: [
              { key: 'c', operator: 'In', values: ['d'] },
              { key: 'e', operator: 'Exists' },
            ],
          },
        },
        {
          annotations: { 'volume.kubernetes.io/selected-node': 'n1' },
          finalizers: ['example.com/keep'], // its owner does not exist, so it is deleted
          ownerReferences: [
            { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u', controller: false, blockOwnerDeletion: true },
          ],
        },
      ),
      status: {
        phase: 'Pending',
        conditions: [
          {
            type: 'Resizing',
            status: 'True',
            reason: 'r',
            message: 'm',
            lastProbeTime: '2026-01-02T03:04:05Z',
            lastTransitionTime: '2026-01-02T03:04:06Z',
          },
          { type: 'FileSystemResizePending', status: 'True' },
        ],
        allocatedResources: { storage: '4Gi' },
        allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
        currentVolumeAttributesClassName: 'silver',
        modifyVolumeStatus: { targetVolumeAttributesClassName: 'gold', status: 'InProgress' },
      },
    },
    { object: make('restore', { storageClassName: 'c', dataSource: snapshot }) },
    { object: make('clone', { storageClassName: 'c', dataSource: { kind: 'PersistentVolumeClaim', name: 'c' } }) },
    { object: make('populated', { dataSourceRef: { apiGroup: 'example.com', kind: 'Populator', name: 'p' } }) },
    { object: make('bound', { storageClassName: 'c', volumeName: 'v', dataSource: snapshot }), status: bound },
    {
      object: make('bound-clone', {
        storageClassName: '',
        volumeName: 'v',
        dataSource: { kind: 'PersistentVolumeClaim', name: 'c' },
      }),
      status: bound,
    },
  ];
}

function classes(metadata: MakeMetadata): CodedObject[] {
  return [
    { object: { metadata: metadata('least'), provisioner: codedDriver } },
    {
      object: {
        metadata: metadata('all', { annotations: { 'storageclass.kubernetes.io/is-default-class': 'false' } }),
        provisioner: codedDriver,
        parameters: { type: 'ssd', empty: '', ['__proto__']: 'own' },
        reclaimPolicy: 'Retain',
        mountOptions: ['hard'],
        allowVolumeExpansion: false,
        volumeBindingMode: 'WaitForFirstConsumer',
        allowedTopologies: [
          { matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] },
          { matchLabelExpressions: [{ key: 'rack', values: ['1'] }] },
        ],
      },
    },
  ];
}

function nodes(metadata: MakeMetadata): CodedObject[] {
  return [
    { object: { metadata: metadata('node', { annotations: { a: 'b' } }), spec: { podCIDR: '10.0.0.0/24' } } },
    { object: { metadata: { name: metadata('bare').name } } },
  ];
}

function csiNodes(metadata: MakeMetadata): CodedObject[] {
  const drivers = [
    { name: codedDriver, nodeID: 'n1', topologyKeys: ['zone', 'rack'], allocatable: { count: 0 } },
    { name: 'other.example.com', nodeID: 'n2', allocatable: { count: 12 } },
    { name: 'bare.example.com', nodeID: 'n3', topologyKeys: [] },
  ];
  return [
    { object: { metadata: metadata('drivers'), spec: { drivers } } },
    { object: { metadata: metadata('none'), spec: { drivers: [] } } },
  ];
}

function attachments(metadata: MakeMetadata): CodedObject[] {
  const time = '2026-01-02T03:04:05Z';
  const spec = { attacher: codedDriver, nodeName: 'n1' };
  const inlineVolumeSpec = {
    accessModes: ['ReadWriteOnce'],
    csi: { driver: codedDriver, volumeHandle: 'h' },
  };
  return [
    { object: { metadata: metadata('named'), spec: { ...spec, source: { persistentVolumeName: 'v' } } } },
    {
      object: { metadata: metadata('failed'), spec: { ...spec, source: { persistentVolumeName: 'w' } } },
      status: {
        attached: false,
        attachError: { time, message: 'no room', errorCode: 8 },
        detachError: { message: 'busy' },
      },
    },
    {
      object: { metadata: metadata('inline'), spec: { ...spec, source: { inlineVolumeSpec } } },
      status: { attached: true, attachmentMetadata: { device: '/dev/sda' } },
    },
  ];
}
