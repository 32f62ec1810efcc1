/** Claims that need many parts of the contract at once; what each part does alone is in test/unit/csi and in go-answers. */
import type { SandboxObject } from '../../../sandbox/api/client.ts';

export interface GoldenCase {
  name: string;
  given: {
    /** Of the command line, besides the addresses. */
    flags?: string[];
    /** Default CONTROLLER_SERVICE. */
    pluginCapabilities?: string[];
    /** Default CREATE_DELETE_VOLUME. */
    controllerCapabilities?: string[];
    class: SandboxObject;
    claim: SandboxObject;
    /** Secrets, sources, snapshots, grants, attributes classes. */
    others?: SandboxObject[];
    /** CreateVolumeResponse. */
    answer: object;
  };
  /** CreateVolumeRequest; fields with their default value are absent, as on the wire. */
  request: object;
  /** The PersistentVolume as it was sent, before the server's defaults. */
  volume: object;
}

const plainClass = {
  metadata: { name: 'sc' },
  provisioner: 'd.example.com',
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
};
const claimMetadata = {
  namespace: 'ns1',
  name: 'c1',
  uid: '1e8d6a5c-0b7f-4c3e-9a2d-5f6e7a8b9c0d',
  resourceVersion: '731',
  annotations: { 'volume.kubernetes.io/storage-provisioner': 'd.example.com' },
};
const claimRef = {
  kind: 'PersistentVolumeClaim',
  apiVersion: 'v1',
  namespace: 'ns1',
  name: 'c1',
  uid: '1e8d6a5c-0b7f-4c3e-9a2d-5f6e7a8b9c0d',
  resourceVersion: '731',
};
const volumeName = 'pvc-1e8d6a5c-0b7f-4c3e-9a2d-5f6e7a8b9c0d';

export const goldenCases: readonly GoldenCase[] = [
  {
    name: 'readers and a writer: one capability each in the order of the claim, never read-only',
    given: {
      flags: ['--controller-publish-readonly'],
      class: plainClass,
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadOnlyMany', 'ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
        },
        status: { phase: 'Pending' },
      },
      answer: { volume: { volume_id: 'vol-1', capacity_bytes: '5368709120' } },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [
        { mount: {}, access_mode: { mode: 'MULTI_NODE_READER_ONLY' } },
        { mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } },
      ],
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadOnlyMany', 'ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
      },
    },
  },
  {
    name: 'one writer and many writers on a block volume, driver that tells single writers apart',
    given: {
      controllerCapabilities: ['CREATE_DELETE_VOLUME', 'SINGLE_NODE_MULTI_WRITER'],
      class: plainClass,
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce', 'ReadWriteMany'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Block',
        },
        status: { phase: 'Pending' },
      },
      answer: { volume: { volume_id: 'vol-1', capacity_bytes: '5368709120' } },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [
        { block: {}, access_mode: { mode: 'SINGLE_NODE_MULTI_WRITER' } },
        { block: {}, access_mode: { mode: 'MULTI_NODE_MULTI_WRITER' } },
      ],
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce', 'ReadWriteMany'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Block',
      },
    },
  },
  {
    name: 'one without parameters, on a clone with a modify secret',
    given: {
      controllerCapabilities: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME', 'MODIFY_VOLUME'],
      class: {
        metadata: { name: 'sc' },
        provisioner: 'd.example.com',
        reclaimPolicy: 'Delete',
        volumeBindingMode: 'Immediate',
        parameters: {
          'csi.storage.k8s.io/controller-modify-secret-name': 'm',
          'csi.storage.k8s.io/controller-modify-secret-namespace': 'vault',
        },
      },
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
          dataSource: { kind: 'PersistentVolumeClaim', name: 'src' },
          dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'src' },
          volumeAttributesClassName: 'v',
        },
        status: { phase: 'Pending' },
      },
      others: [
        {
          apiVersion: 'storage.k8s.io/v1',
          kind: 'VolumeAttributesClass',
          metadata: { name: 'v' },
          driverName: 'd.example.com',
        },
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { namespace: 'ns1', name: 'src', uid: '0d3c9a3e-7c1e-4a7e-8e3a-2b1f6c5d4e3f' },
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: { storage: '5Gi' } },
            storageClassName: 'other',
            volumeMode: 'Filesystem',
            volumeName: 'pv-src',
          },
          status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '5Gi' } },
        },
        {
          apiVersion: 'v1',
          kind: 'PersistentVolume',
          metadata: { name: 'pv-src', annotations: { 'pv.kubernetes.io/provisioned-by': 'd.example.com' } },
          spec: {
            accessModes: ['ReadWriteOnce'],
            capacity: { storage: '5Gi' },
            claimRef: {
              kind: 'PersistentVolumeClaim',
              apiVersion: 'v1',
              namespace: 'ns1',
              name: 'src',
              uid: '0d3c9a3e-7c1e-4a7e-8e3a-2b1f6c5d4e3f',
            },
            csi: { driver: 'd.example.com', volumeHandle: 'vol-src' },
            persistentVolumeReclaimPolicy: 'Delete',
            storageClassName: 'other',
            volumeMode: 'Filesystem',
          },
          status: { phase: 'Bound' },
        },
      ],
      answer: {
        volume: {
          volume_id: 'vol-1',
          capacity_bytes: '5368709120',
          content_source: { volume: { volume_id: 'vol-src' } },
        },
      },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
      volume_content_source: { volume: { volume_id: 'vol-src' } },
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
          'volume.kubernetes.io/controller-modify-secret-name': 'm',
          'volume.kubernetes.io/controller-modify-secret-namespace': 'vault',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
        volumeAttributesClassName: 'v',
      },
    },
  },
  {
    name: 'its parameters stand beside those of the class',
    given: {
      controllerCapabilities: ['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'],
      class: {
        metadata: { name: 'sc' },
        provisioner: 'd.example.com',
        reclaimPolicy: 'Delete',
        volumeBindingMode: 'Immediate',
        parameters: { iops: '1' },
      },
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
          volumeAttributesClassName: 'v',
        },
        status: { phase: 'Pending' },
      },
      others: [
        {
          apiVersion: 'storage.k8s.io/v1',
          kind: 'VolumeAttributesClass',
          metadata: { name: 'v' },
          driverName: 'd.example.com',
          parameters: { iops: '9' },
        },
      ],
      answer: { volume: { volume_id: 'vol-1', capacity_bytes: '5368709120' } },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
      parameters: { iops: '1' },
      mutable_parameters: { iops: '9' },
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
        volumeAttributesClassName: 'v',
      },
    },
  },
  {
    name: 'the driver gives 2Gi for 1500Mi',
    given: {
      class: plainClass,
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1500Mi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
        },
        status: { phase: 'Pending' },
      },
      answer: { volume: { volume_id: 'vol-1', capacity_bytes: '2147483648' } },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '1572864000' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '2Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
      },
    },
  },
  {
    name: 'a restored snapshot with a secret: only the provisioner secret is sent; the restore size is a lower bound',
    given: {
      controllerCapabilities: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'],
      class: {
        metadata: { name: 'sc' },
        provisioner: 'd.example.com',
        reclaimPolicy: 'Delete',
        volumeBindingMode: 'Immediate',
        parameters: {
          'csi.storage.k8s.io/provisioner-secret-name': 'creds',
          'csi.storage.k8s.io/provisioner-secret-namespace': 'vault',
        },
      },
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
          dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' },
          dataSourceRef: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' },
        },
        status: { phase: 'Pending' },
      },
      others: [
        {
          apiVersion: 'snapshot.storage.k8s.io/v1',
          kind: 'VolumeSnapshot',
          metadata: { namespace: 'ns1', name: 'snap', uid: '5b7e1c0a-1111-4222-8333-944455556666' },
          spec: { source: { persistentVolumeClaimName: 'src' } },
          status: { boundVolumeSnapshotContentName: 'sc-1', readyToUse: true, restoreSize: '95' },
        },
        {
          apiVersion: 'snapshot.storage.k8s.io/v1',
          kind: 'VolumeSnapshotContent',
          metadata: { name: 'sc-1' },
          spec: {
            driver: 'd.example.com',
            deletionPolicy: 'Delete',
            source: { volumeHandle: 'vol-src' },
            volumeSnapshotRef: {
              kind: 'VolumeSnapshot',
              apiVersion: 'snapshot.storage.k8s.io/v1',
              namespace: 'ns1',
              name: 'snap',
              uid: '5b7e1c0a-1111-4222-8333-944455556666',
            },
          },
          status: { snapshotHandle: 'sid', readyToUse: true },
        },
        { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'vault', name: 'creds' }, data: { k: 'dg==' } },
      ],
      answer: {
        volume: {
          volume_id: 'vol-1',
          capacity_bytes: '5368709120',
          content_source: { snapshot: { snapshot_id: 'sid' } },
        },
      },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
      secrets: { k: 'v' },
      volume_content_source: { snapshot: { snapshot_id: 'sid' } },
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': 'creds',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'vault',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
      },
    },
  },
  {
    name: 'a clone from another namespace, granted',
    given: {
      flags: ['--feature-gates=CrossNamespaceVolumeDataSource=true'],
      controllerCapabilities: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'],
      class: plainClass,
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
          dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'src', namespace: 'ns2' },
        },
        status: { phase: 'Pending' },
      },
      others: [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { namespace: 'ns2', name: 'src', uid: '0d3c9a3e-7c1e-4a7e-8e3a-2b1f6c5d4e3f' },
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: { storage: '5Gi' } },
            storageClassName: 'other',
            volumeMode: 'Filesystem',
            volumeName: 'pv-src',
          },
          status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '5Gi' } },
        },
        {
          apiVersion: 'v1',
          kind: 'PersistentVolume',
          metadata: { name: 'pv-src', annotations: { 'pv.kubernetes.io/provisioned-by': 'd.example.com' } },
          spec: {
            accessModes: ['ReadWriteOnce'],
            capacity: { storage: '5Gi' },
            claimRef: {
              kind: 'PersistentVolumeClaim',
              apiVersion: 'v1',
              namespace: 'ns2',
              name: 'src',
              uid: '0d3c9a3e-7c1e-4a7e-8e3a-2b1f6c5d4e3f',
            },
            csi: { driver: 'd.example.com', volumeHandle: 'vol-src' },
            persistentVolumeReclaimPolicy: 'Delete',
            storageClassName: 'other',
            volumeMode: 'Filesystem',
          },
          status: { phase: 'Bound' },
        },
        {
          apiVersion: 'gateway.networking.k8s.io/v1beta1',
          kind: 'ReferenceGrant',
          metadata: { namespace: 'ns2', name: 'grant' },
          spec: {
            from: [{ group: '', kind: 'PersistentVolumeClaim', namespace: 'ns1' }],
            to: [{ group: '', kind: 'PersistentVolumeClaim' }],
          },
        },
      ],
      answer: {
        volume: {
          volume_id: 'vol-1',
          capacity_bytes: '5368709120',
          content_source: { volume: { volume_id: 'vol-src' } },
        },
      },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
      volume_content_source: { volume: { volume_id: 'vol-src' } },
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
      },
    },
  },
  {
    name: 'extra metadata where the class has no parameters of the driver, with a short volume name',
    given: {
      flags: ['--extra-create-metadata', '--volume-name-uuid-length=8'],
      class: {
        metadata: { name: 'sc' },
        provisioner: 'd.example.com',
        reclaimPolicy: 'Delete',
        volumeBindingMode: 'Immediate',
        parameters: { 'csi.storage.k8s.io/fstype': 'xfs' },
      },
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
        },
        status: { phase: 'Pending' },
      },
      answer: { volume: { volume_id: 'vol-1', capacity_bytes: '5368709120' } },
    },
    request: {
      name: 'pvc-1e8d6a5c',
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: { fs_type: 'xfs' }, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
      parameters: {
        'csi.storage.k8s.io/pvc/name': 'c1',
        'csi.storage.k8s.io/pvc/namespace': 'ns1',
        'csi.storage.k8s.io/pv/name': 'pvc-1e8d6a5c',
      },
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: 'pvc-1e8d6a5c',
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          fsType: 'xfs',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
      },
    },
  },
  {
    name: 'all seventeen keys at once leave nothing for the driver',
    given: {
      class: {
        metadata: { name: 'sc' },
        provisioner: 'd.example.com',
        reclaimPolicy: 'Delete',
        volumeBindingMode: 'Immediate',
        parameters: {
          'csi.storage.k8s.io/fstype': 'btrfs',
          'csi.storage.k8s.io/secret-name': 'unused',
          'csi.storage.k8s.io/secret-namespace': 'unused',
          'csi.storage.k8s.io/provisioner-secret-name': 'provisioner',
          'csi.storage.k8s.io/provisioner-secret-namespace': 'in-provisioner',
          'csi.storage.k8s.io/controller-publish-secret-name': 'controller-publish',
          'csi.storage.k8s.io/controller-publish-secret-namespace': 'in-controller-publish',
          'csi.storage.k8s.io/node-stage-secret-name': 'node-stage',
          'csi.storage.k8s.io/node-stage-secret-namespace': 'in-node-stage',
          'csi.storage.k8s.io/node-publish-secret-name': 'node-publish',
          'csi.storage.k8s.io/node-publish-secret-namespace': 'in-node-publish',
          'csi.storage.k8s.io/controller-expand-secret-name': 'controller-expand',
          'csi.storage.k8s.io/controller-expand-secret-namespace': 'in-controller-expand',
          'csi.storage.k8s.io/node-expand-secret-name': 'node-expand',
          'csi.storage.k8s.io/node-expand-secret-namespace': 'in-node-expand',
          'csi.storage.k8s.io/controller-modify-secret-name': 'controller-modify',
          'csi.storage.k8s.io/controller-modify-secret-namespace': 'in-controller-modify',
        },
      },
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
        },
        status: { phase: 'Pending' },
      },
      others: [
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { namespace: 'in-provisioner', name: 'provisioner' },
          data: { k: 'dg==' },
        },
      ],
      answer: { volume: { volume_id: 'vol-1', capacity_bytes: '5368709120' } },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: { fs_type: 'btrfs' }, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
      secrets: { k: 'v' },
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': 'provisioner',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'in-provisioner',
          'volume.kubernetes.io/controller-modify-secret-name': 'controller-modify',
          'volume.kubernetes.io/controller-modify-secret-namespace': 'in-controller-modify',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          fsType: 'btrfs',
          controllerPublishSecretRef: { name: 'controller-publish', namespace: 'in-controller-publish' },
          nodeStageSecretRef: { name: 'node-stage', namespace: 'in-node-stage' },
          nodePublishSecretRef: { name: 'node-publish', namespace: 'in-node-publish' },
          controllerExpandSecretRef: { name: 'controller-expand', namespace: 'in-controller-expand' },
          nodeExpandSecretRef: { name: 'node-expand', namespace: 'in-node-expand' },
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': '<identity>' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
      },
    },
  },
  {
    name: "the driver's context, which wins over our identity key",
    given: {
      class: plainClass,
      claim: {
        metadata: claimMetadata,
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '5Gi' } },
          storageClassName: 'sc',
          volumeMode: 'Filesystem',
        },
        status: { phase: 'Pending' },
      },
      answer: {
        volume: {
          volume_id: 'vol-1',
          capacity_bytes: '5368709120',
          volume_context: { pool: 'a', 'storage.kubernetes.io/csiProvisionerIdentity': 'mine' },
        },
      },
    },
    request: {
      name: volumeName,
      capacity_range: { required_bytes: '5368709120' },
      volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
    },
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: volumeName,
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'd.example.com',
          'volume.kubernetes.io/provisioner-deletion-secret-name': '',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
        },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '5Gi' },
        claimRef,
        csi: {
          driver: 'd.example.com',
          volumeHandle: 'vol-1',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': 'mine', pool: 'a' },
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        volumeMode: 'Filesystem',
      },
    },
  },
];
