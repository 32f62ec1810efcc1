import { fields, list, map, optional } from './schema.ts';
import type { ObjectSchema, Schema } from './schema.ts';

const strings = list('string');
const stringMap = map('string');
const quantities = map('quantity');

const metadata = fields({
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  selfLink: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'integer',
  creationTimestamp: 'time',
  deletionTimestamp: 'time',
  deletionGracePeriodSeconds: 'integer',
  labels: stringMap,
  annotations: stringMap,
  ownerReferences: list(
    fields({
      apiVersion: 'string',
      kind: 'string',
      name: 'string',
      uid: 'string',
      controller: 'boolean',
      blockOwnerDeletion: 'boolean',
    }),
  ),
  finalizers: strings,
  managedFields: list(
    fields({
      manager: 'string',
      operation: 'string',
      apiVersion: 'string',
      time: 'time',
      fieldsType: 'string',
      fieldsV1: 'any',
      subresource: 'string',
    }),
  ),
});

/** Fields of every object besides its own ones. */
const common = { apiVersion: 'string', kind: 'string', metadata } as const;

const objectReference = fields({
  kind: 'string',
  namespace: 'string',
  name: 'string',
  uid: 'string',
  apiVersion: 'string',
  resourceVersion: 'string',
  fieldPath: 'string',
});
const secretReference = fields({ name: 'string', namespace: 'string' });
const condition = fields({
  type: 'string',
  status: 'string',
  observedGeneration: 'integer',
  lastProbeTime: 'time',
  lastTransitionTime: 'time',
  reason: 'string',
  message: 'string',
});
const labelSelector = fields({
  matchLabels: stringMap,
  matchExpressions: list(fields({ key: 'string', operator: 'string', values: strings })),
});
const nodeSelectorTerm = fields({
  matchExpressions: list(fields({ key: 'string', operator: 'string', values: strings })),
  matchFields: list(fields({ key: 'string', operator: 'string', values: strings })),
});
const nodeSelector = fields({ nodeSelectorTerms: list(nodeSelectorTerm) });
const topologySelectorTerm = fields({
  matchLabelExpressions: list(fields({ key: 'string', values: strings })),
});

const disk = { fsType: 'string', readOnly: 'boolean' } as const;

/** Volume sources of a PersistentVolume; exactly one must be set. */
export const volumeSources = {
  awsElasticBlockStore: fields({ ...disk, volumeID: 'string', partition: 'int32' }),
  azureDisk: fields({
    diskName: 'string',
    diskURI: 'string',
    cachingMode: optional('string'),
    fsType: optional('string'),
    readOnly: optional('boolean'),
    kind: optional('string'),
  }),
  azureFile: fields({
    secretName: 'string',
    shareName: 'string',
    readOnly: 'boolean',
    secretNamespace: optional('string'),
  }),
  cephfs: fields({
    monitors: strings,
    path: 'string',
    user: 'string',
    secretFile: 'string',
    secretRef: secretReference,
    readOnly: 'boolean',
  }),
  cinder: fields({ ...disk, volumeID: 'string', secretRef: secretReference }),
  csi: fields({
    ...disk,
    driver: 'string',
    volumeHandle: 'string',
    volumeAttributes: stringMap,
    controllerPublishSecretRef: secretReference,
    nodeStageSecretRef: secretReference,
    nodePublishSecretRef: secretReference,
    controllerExpandSecretRef: secretReference,
    nodeExpandSecretRef: secretReference,
  }),
  fc: fields({ ...disk, targetWWNs: strings, lun: optional('int32'), wwids: strings }),
  flexVolume: fields({ ...disk, driver: 'string', secretRef: secretReference, options: stringMap }),
  flocker: fields({ datasetName: 'string', datasetUUID: 'string' }),
  gcePersistentDisk: fields({ ...disk, pdName: 'string', partition: 'int32' }),
  glusterfs: fields({
    endpoints: 'string',
    path: 'string',
    readOnly: 'boolean',
    endpointsNamespace: optional('string'),
  }),
  hostPath: fields({ path: 'string', type: optional('string') }),
  iscsi: fields({
    ...disk,
    targetPortal: 'string',
    iqn: 'string',
    lun: 'int32',
    iscsiInterface: 'string',
    portals: strings,
    chapAuthDiscovery: 'boolean',
    chapAuthSession: 'boolean',
    secretRef: secretReference,
    initiatorName: optional('string'),
  }),
  local: fields({ path: 'string', fsType: optional('string') }),
  nfs: fields({ server: 'string', path: 'string', readOnly: 'boolean' }),
  photonPersistentDisk: fields({ pdID: 'string', fsType: 'string' }),
  portworxVolume: fields({ ...disk, volumeID: 'string' }),
  quobyte: fields({
    registry: 'string',
    volume: 'string',
    readOnly: 'boolean',
    user: 'string',
    group: 'string',
    tenant: 'string',
  }),
  rbd: fields({
    ...disk,
    monitors: strings,
    image: 'string',
    pool: 'string',
    user: 'string',
    keyring: 'string',
    secretRef: secretReference,
  }),
  scaleIO: fields({
    ...disk,
    gateway: 'string',
    system: 'string',
    secretRef: secretReference,
    sslEnabled: 'boolean',
    protectionDomain: 'string',
    storagePool: 'string',
    storageMode: 'string',
    volumeName: 'string',
  }),
  storageos: fields({ ...disk, volumeName: 'string', volumeNamespace: 'string', secretRef: objectReference }),
  vsphereVolume: fields({
    volumePath: 'string',
    fsType: 'string',
    storagePolicyName: 'string',
    storagePolicyID: 'string',
  }),
} as const satisfies Record<string, Schema>;

const dataSource = { apiGroup: optional('string'), kind: 'string', name: 'string' } as const;

/** The spec of a PersistentVolumeClaim. */
export const claimSpecSchema = fields({
  accessModes: strings,
  selector: labelSelector,
  resources: fields({ requests: quantities, limits: quantities }),
  volumeName: 'string',
  storageClassName: optional('string'),
  volumeMode: optional('string'),
  dataSource: fields(dataSource),
  dataSourceRef: fields({ ...dataSource, namespace: optional('string') }),
  volumeAttributesClassName: optional('string'),
});

const container = fields({
  name: 'string',
  image: 'string',
  command: strings,
  args: strings,
  workingDir: 'string',
  ports: list('any'),
  envFrom: list('any'),
  env: list('any'),
  resources: fields({ limits: quantities, requests: quantities, claims: list('any') }),
  resizePolicy: list('any'),
  restartPolicy: 'string',
  restartPolicyRules: list('any'),
  volumeMounts: list('any'),
  volumeDevices: list(fields({ name: 'string', devicePath: 'string' })),
  livenessProbe: 'any',
  readinessProbe: 'any',
  startupProbe: 'any',
  lifecycle: 'any',
  terminationMessagePath: 'string',
  terminationMessagePolicy: 'string',
  imagePullPolicy: 'string',
  securityContext: 'any',
  stdin: 'boolean',
  stdinOnce: 'boolean',
  tty: 'boolean',
});

const podSpec = fields({
  volumes: list('any'),
  initContainers: list(container),
  containers: list(container),
  ephemeralContainers: list('any'),
  restartPolicy: 'string',
  terminationGracePeriodSeconds: 'integer',
  activeDeadlineSeconds: 'integer',
  dnsPolicy: 'string',
  nodeSelector: stringMap,
  serviceAccountName: 'string',
  serviceAccount: 'string',
  automountServiceAccountToken: 'boolean',
  nodeName: 'string',
  hostNetwork: 'boolean',
  hostPID: 'boolean',
  hostIPC: 'boolean',
  shareProcessNamespace: 'boolean',
  securityContext: 'any',
  imagePullSecrets: list(fields({ name: 'string' })),
  hostname: 'string',
  hostnameOverride: 'string',
  subdomain: 'string',
  affinity: 'any',
  schedulerName: 'string',
  tolerations: list('any'),
  hostAliases: list('any'),
  priorityClassName: 'string',
  priority: 'integer',
  dnsConfig: 'any',
  readinessGates: list('any'),
  runtimeClassName: 'string',
  enableServiceLinks: 'boolean',
  preemptionPolicy: 'string',
  overhead: quantities,
  topologySpreadConstraints: list('any'),
  setHostnameAsFQDN: 'boolean',
  os: 'any',
  hostUsers: 'boolean',
  schedulingGates: list(fields({ name: 'string' })),
  resourceClaims: list('any'),
  resources: 'any',
  workloadRef: 'any',
});

const eventFields = {
  involvedObject: objectReference,
  reason: 'string',
  message: 'string',
  source: fields({ component: 'string', host: 'string' }),
  firstTimestamp: 'time',
  lastTimestamp: 'time',
  count: 'integer',
  type: 'string',
  eventTime: 'time',
  series: fields({ count: 'integer', lastObservedTime: 'time', state: 'string' }),
  action: 'string',
  related: objectReference,
  reportingComponent: 'string',
  reportingInstance: 'string',
} as const;

const snapshotError = fields({ message: 'string', time: 'time' });

/** Checked kinds by `kind.group`; a kind that is not here keeps whatever it is given. */
export const kindSchemas: ReadonlyMap<string, ObjectSchema> = new Map<string, ObjectSchema>([
  [
    'PersistentVolume',
    fields({
      ...common,
      spec: fields({
        capacity: quantities,
        ...volumeSources,
        accessModes: strings,
        claimRef: objectReference,
        persistentVolumeReclaimPolicy: 'string',
        storageClassName: 'string',
        mountOptions: strings,
        volumeMode: 'string',
        nodeAffinity: fields({ required: nodeSelector }),
        volumeAttributesClassName: 'string',
      }),
      status: fields({ phase: 'string', message: 'string', reason: 'string', lastPhaseTransitionTime: 'time' }),
    }),
  ],
  [
    'PersistentVolumeClaim',
    fields({
      ...common,
      spec: claimSpecSchema,
      status: fields({
        phase: 'string',
        accessModes: strings,
        capacity: quantities,
        conditions: list(condition),
        allocatedResources: quantities,
        allocatedResourceStatuses: stringMap,
        currentVolumeAttributesClassName: 'string',
        modifyVolumeStatus: fields({ targetVolumeAttributesClassName: 'string', status: 'string' }),
      }),
    }),
  ],
  [
    'StorageClass.storage.k8s.io',
    fields({
      ...common,
      provisioner: 'string',
      parameters: stringMap,
      reclaimPolicy: 'string',
      mountOptions: strings,
      allowVolumeExpansion: 'boolean',
      volumeBindingMode: 'string',
      allowedTopologies: list(topologySelectorTerm),
    }),
  ],
  [
    'CSIDriver.storage.k8s.io',
    fields({
      ...common,
      spec: fields({
        attachRequired: 'boolean',
        podInfoOnMount: 'boolean',
        volumeLifecycleModes: strings,
        storageCapacity: 'boolean',
        fsGroupPolicy: 'string',
        tokenRequests: list(fields({ audience: 'string', expirationSeconds: 'integer' })),
        requiresRepublish: 'boolean',
        seLinuxMount: 'boolean',
        nodeAllocatableUpdatePeriodSeconds: 'integer',
        serviceAccountTokenInSecrets: 'boolean',
        preventPodSchedulingIfMissing: 'boolean',
      }),
    }),
  ],
  [
    'CSINode.storage.k8s.io',
    fields({
      ...common,
      spec: fields({
        drivers: list(
          fields({
            name: 'string',
            nodeID: 'string',
            topologyKeys: strings,
            allocatable: fields({ count: 'int32' }),
          }),
        ),
      }),
    }),
  ],
  [
    'VolumeAttachment.storage.k8s.io',
    fields({
      ...common,
      spec: fields({
        attacher: 'string',
        source: fields({ persistentVolumeName: 'string', inlineVolumeSpec: 'any' }),
        nodeName: 'string',
      }),
      status: fields({
        attached: 'boolean',
        attachmentMetadata: stringMap,
        attachError: fields({ time: 'time', message: 'string', errorCode: 'integer' }),
        detachError: fields({ time: 'time', message: 'string', errorCode: 'integer' }),
      }),
    }),
  ],
  ['VolumeAttributesClass.storage.k8s.io', fields({ ...common, driverName: 'string', parameters: stringMap })],
  [
    'CSIStorageCapacity.storage.k8s.io',
    fields({
      ...common,
      nodeTopology: labelSelector,
      storageClassName: 'string',
      capacity: 'quantity',
      maximumVolumeSize: 'quantity',
    }),
  ],
  [
    'Lease.coordination.k8s.io',
    fields({
      ...common,
      spec: fields({
        holderIdentity: 'string',
        leaseDurationSeconds: 'integer',
        acquireTime: 'time',
        renewTime: 'time',
        leaseTransitions: 'integer',
        strategy: 'string',
        preferredHolder: 'string',
      }),
    }),
  ],
  ['Pod', fields({ ...common, spec: podSpec, status: 'any' })],
  [
    'Node',
    fields({
      ...common,
      spec: fields({
        podCIDR: 'string',
        podCIDRs: strings,
        providerID: 'string',
        unschedulable: 'boolean',
        taints: list(fields({ key: 'string', value: 'string', effect: 'string', timeAdded: 'time' })),
        configSource: 'any',
        externalID: 'string',
      }),
      status: 'any',
    }),
  ],
  ['Namespace', fields({ ...common, spec: fields({ finalizers: strings }), status: 'any' })],
  ['Secret', fields({ ...common, immutable: 'boolean', data: stringMap, stringData: stringMap, type: 'string' })],
  ['ConfigMap', fields({ ...common, immutable: 'boolean', data: stringMap, binaryData: stringMap })],
  [
    'ServiceAccount',
    fields({
      ...common,
      secrets: list(objectReference),
      imagePullSecrets: list(fields({ name: 'string' })),
      automountServiceAccountToken: 'boolean',
    }),
  ],
  ['Event', fields({ ...common, ...eventFields })],
  [
    'VolumeSnapshot.snapshot.storage.k8s.io',
    fields({
      ...common,
      spec: fields({
        source: fields({ persistentVolumeClaimName: 'string', volumeSnapshotContentName: 'string' }),
        volumeSnapshotClassName: 'string',
      }),
      status: fields({
        boundVolumeSnapshotContentName: 'string',
        creationTime: 'time',
        readyToUse: 'boolean',
        restoreSize: 'quantity',
        error: snapshotError,
        volumeGroupSnapshotName: 'string',
      }),
    }),
  ],
  [
    'VolumeSnapshotContent.snapshot.storage.k8s.io',
    fields({
      ...common,
      spec: fields({
        volumeSnapshotRef: objectReference,
        deletionPolicy: 'string',
        driver: 'string',
        volumeSnapshotClassName: 'string',
        source: fields({ volumeHandle: 'string', snapshotHandle: 'string' }),
        sourceVolumeMode: 'string',
      }),
      status: fields({
        snapshotHandle: 'string',
        creationTime: 'integer',
        restoreSize: 'integer',
        readyToUse: 'boolean',
        error: snapshotError,
        volumeGroupSnapshotHandle: 'string',
      }),
    }),
  ],
  [
    'VolumeSnapshotClass.snapshot.storage.k8s.io',
    fields({ ...common, driver: 'string', parameters: stringMap, deletionPolicy: 'string' }),
  ],
  [
    'ReferenceGrant.gateway.networking.k8s.io',
    fields({
      ...common,
      spec: fields({
        from: list(fields({ group: 'string', kind: 'string', namespace: 'string' })),
        to: list(fields({ group: 'string', kind: 'string', name: 'string' })),
      }),
    }),
  ],
]);

/** The schema of `metadata`, which every kind obeys. */
export const anyKindSchema: ObjectSchema = fields({ metadata });

/** The schema of a kind, if it has one. */
export function schemaOf(kind: string, group: string): ObjectSchema | undefined {
  return kindSchemas.get(group === '' ? kind : `${kind}.${group}`);
}
