import { createHash } from 'node:crypto';

/** A claim and its volume as they look in a cluster that has run for a while, all fields that controllers write. */
export interface BoundPair {
  claim: { metadata: { namespace: string; name: string } };
  volume: { metadata: { name: string } };
}

const times = ['2026-03-01T08:15:00Z', '2026-03-01T08:15:02Z'];

/**
 * Made from its number alone, so that every run loads the same.
 *
 * @param handleLength - characters of the volume's handle. Default 40.
 */
export function boundPair(index: number, driver: string, handleLength = 40): BoundPair {
  const namespace = `team-${index % 200}`;
  const name = `data-service-${index % 37}-${index}`;
  const claimUid = uid('claim', index);
  const volumeName = `pvc-${claimUid}`;
  const labels = {
    'app.kubernetes.io/name': `service-${index % 37}`,
    'app.kubernetes.io/instance': `service-${index % 37}-${index % 11}`,
    'app.kubernetes.io/managed-by': 'Helm',
  };
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      namespace,
      uid: claimUid,
      creationTimestamp: times[0],
      labels,
      annotations: {
        'pv.kubernetes.io/bind-completed': 'yes',
        'pv.kubernetes.io/bound-by-controller': 'yes',
        'volume.beta.kubernetes.io/storage-provisioner': driver,
        'volume.kubernetes.io/storage-provisioner': driver,
        'volume.kubernetes.io/selected-node': `node-${index % 300}.example.com`,
      },
      finalizers: ['kubernetes.io/pvc-protection'],
      managedFields: [
        managed('kube-scheduler', 'metadata', ['annotations', 'volume.kubernetes.io/selected-node']),
        managed('kube-controller-manager', 'metadata', ['annotations', 'pv.kubernetes.io/bind-completed']),
        managed('helm', 'spec', ['accessModes', 'resources', 'storageClassName', 'volumeMode']),
        managed('kube-controller-manager', 'status', ['accessModes', 'capacity', 'phase']),
      ],
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: `${(index % 50) + 1}Gi` } },
      storageClassName: `tier-${index % 5}`,
      volumeMode: 'Filesystem',
      volumeName,
    },
    status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: `${(index % 50) + 1}Gi` } },
  };
  const volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeName,
      uid: uid('volume', index),
      creationTimestamp: times[1],
      annotations: {
        'pv.kubernetes.io/provisioned-by': driver,
        'volume.kubernetes.io/provisioner-deletion-secret-name': 'backend-login',
        'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'storage-system',
      },
      finalizers: ['external-provisioner.volume.kubernetes.io/finalizer', 'kubernetes.io/pv-protection'],
      managedFields: [
        managed('csi-provisioner', 'spec', [
          'accessModes',
          'capacity',
          'claimRef',
          'csi',
          'nodeAffinity',
          'volumeMode',
        ]),
        managed('kube-controller-manager', 'status', ['phase', 'lastPhaseTransitionTime']),
      ],
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: `${(index % 50) + 1}Gi` },
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        name,
        namespace,
        uid: claimUid,
        resourceVersion: '1200',
      },
      csi: {
        driver,
        fsType: 'ext4',
        volumeHandle: `vol-${uid('handle', index)}`.padStart(handleLength, '0'),
        volumeAttributes: {
          'storage.kubernetes.io/csiProvisionerIdentity': `1763640000000-1234-${driver}`,
          pool: `pool-${index % 8}`,
        },
        nodeStageSecretRef: { name: 'backend-login', namespace: 'storage-system' },
      },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            {
              matchExpressions: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: [`zone-${index % 3}`] }],
            },
          ],
        },
      },
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: `tier-${index % 5}`,
      volumeMode: 'Filesystem',
    },
    status: { phase: 'Bound', lastPhaseTransitionTime: times[1] },
  };
  return { claim, volume };
}

function uid(kind: string, index: number): string {
  const hex = createHash('sha256').update(`${kind} ${index}`).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}

function managed(manager: string, part: string, fields: string[]): object {
  const owned = Object.fromEntries(fields.map((field) => [`f:${field}`, { '.': {}, 'f:value': {} }]));
  return {
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    time: times[0],
    fieldsType: 'FieldsV1',
    fieldsV1: { [`f:${part}`]: owned },
    ...(part === 'status' && { subresource: 'status' }),
  };
}
