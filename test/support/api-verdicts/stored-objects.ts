import { type ComparedKind, comparedKinds, type Json } from './kinds.ts';
import { volumeSources } from './volume-sources.ts';

/** A valid object that both APIs have, for updates to replace. */
export interface StoredObject {
  readonly kind: ComparedKind;
  readonly name: string;
  readonly object: Json;
  readonly status?: Json;
}

const nodeAffinity = {
  required: {
    nodeSelectorTerms: [
      {
        matchExpressions: [
          { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['a', 'b'] },
          { key: 'example.com/disk', operator: 'Exists' },
          { key: 'example.com/size', operator: 'Gt', values: ['5'] },
        ],
        matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }],
      },
    ],
  },
};
const selector = {
  matchLabels: { tier: 'fast' },
  matchExpressions: [
    { key: 'example.com/zone', operator: 'In', values: ['a', 'b'] },
    { key: 'example.com/gone', operator: 'DoesNotExist' },
  ],
};
const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snapshot' };

/** Valid objects that have, together, every field of the compared kinds. */
export function storedObjects(): StoredObject[] {
  return [...classes(), ...volumes(), ...claims(), ...driverObjects()];
}

function stored(kind: ComparedKind, name: string, body: Json, status?: Json): StoredObject {
  const metadata = {
    name,
    labels: { 'example.com/app': 'db' },
    annotations: { 'example.com/note': 'any text' },
    finalizers: ['example.com/kept'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'owner', uid: 'uid-1', controller: true }],
  };
  const object = { apiVersion: comparedKinds[kind].apiVersion, kind, metadata, ...body };
  return { kind, name, object, ...(status === undefined ? {} : { status }) };
}

function volumes(): StoredObject[] {
  const common = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
    persistentVolumeReclaimPolicy: 'Retain',
    storageClassName: 'growing',
    mountOptions: ['hard'],
    volumeMode: 'Filesystem',
  };
  const claimRef = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    name: 'claim',
    namespace: 'default',
    uid: 'uid-1',
  };
  const perSource = Object.entries(volumeSources).map(([source, value]) =>
    stored('PersistentVolume', source.toLowerCase(), { spec: { ...common, nodeAffinity, [source]: value } }),
  );
  const csi = { driver: 'my.driver.example', volumeHandle: 'vol-2' };
  return [
    ...perSource,
    stored('PersistentVolume', 'with-class', {
      spec: { ...common, claimRef, nodeAffinity, volumeAttributesClassName: 'gold', csi },
    }),
    stored('PersistentVolume', 'plain', {
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOncePod'], csi },
    }),
    stored('PersistentVolume', 'wwids', { spec: { ...common, fc: { wwids: ['3600508b400105e21'], fsType: 'ext4' } } }),
  ];
}

function claims(): StoredObject[] {
  const resources = { requests: { storage: '1Gi' }, limits: { storage: '10Gi' } };
  const common = { accessModes: ['ReadWriteOnce'], resources, volumeMode: 'Filesystem' };
  const bound = { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } };
  const claim = (name: string, spec: Json, status?: Json): StoredObject =>
    stored('PersistentVolumeClaim', name, { spec: { ...common, ...spec } }, status);
  return [
    claim('pending', { storageClassName: 'growing', selector, volumeAttributesClassName: 'gold' }),
    claim('classless', {}),
    claim('restored', { storageClassName: '', dataSource: snapshot, dataSourceRef: snapshot }),
    claim('cloned', {
      storageClassName: 'growing',
      dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'source', namespace: 'other' },
    }),
    claim('bound', { storageClassName: 'growing', volumeName: 'plain', volumeAttributesClassName: 'gold' }, bound),
    claim('bound-fixed', { storageClassName: 'fixed', volumeName: 'plain' }, bound),
    claim(
      'modified',
      { storageClassName: 'growing', volumeName: 'plain', volumeAttributesClassName: 'gold' },
      { ...bound, currentVolumeAttributesClassName: 'gold' },
    ),
    claim(
      'growing',
      { storageClassName: 'growing', volumeName: 'plain', resources: { requests: { storage: '5Gi' } } },
      { ...bound, allocatedResources: { storage: '5Gi' } },
    ),
  ];
}

function classes(): StoredObject[] {
  const allowedTopologies = [
    {
      matchLabelExpressions: [
        { key: 'topology.kubernetes.io/zone', values: ['a', 'b'] },
        { key: 'example.com/rack', values: ['1'] },
      ],
    },
  ];
  return [
    stored('StorageClass', 'growing', {
      provisioner: 'my.driver.example',
      parameters: { type: 'fast', 'csi.storage.k8s.io/fstype': 'ext4' },
      reclaimPolicy: 'Delete',
      mountOptions: ['hard'],
      allowVolumeExpansion: true,
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies,
    }),
    stored('StorageClass', 'fixed', { provisioner: 'kubernetes.io/no-provisioner' }),
    stored('VolumeAttributesClass', 'gold', { driverName: 'my.driver.example', parameters: { iops: '1000' } }),
  ];
}

function driverObjects(): StoredObject[] {
  const drivers = [
    { name: 'my.driver.example', nodeID: 'id-1', topologyKeys: ['example.com/zone'], allocatable: { count: 10 } },
    { name: 'second.example', nodeID: 'id-2', topologyKeys: null },
  ];
  return [
    stored('CSIDriver', 'my.driver.example', {
      spec: {
        attachRequired: true,
        podInfoOnMount: true,
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
        storageCapacity: true,
        fsGroupPolicy: 'File',
        tokenRequests: [{ audience: 'a', expirationSeconds: 3600 }, { audience: '' }],
        requiresRepublish: true,
        seLinuxMount: true,
        nodeAllocatableUpdatePeriodSeconds: 60,
        serviceAccountTokenInSecrets: true,
      },
    }),
    stored('CSIDriver', 'plain.example', { spec: {} }),
    stored('CSINode', 'node-1', { spec: { drivers } }),
    stored('CSINode', 'node-2', { spec: { drivers: [] } }),
    stored('CSIStorageCapacity', 'full', {
      nodeTopology: selector,
      storageClassName: 'growing',
      capacity: '10Gi',
      maximumVolumeSize: '1Gi',
    }),
    stored('CSIStorageCapacity', 'bare', { storageClassName: 'fixed' }),
  ];
}
