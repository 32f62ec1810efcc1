/**
 * The default values of the two public charts, as their documentation lists them: with `--reuse-values` Helm renders a new chart
 * with these and no others.
 */
import type { Values } from './helm.ts';

/** Of nfs-subdir-external-provisioner 4.0.18. */
export const subdirDefaults: Values = {
  replicaCount: 1,
  strategyType: 'Recreate',
  image: {
    repository: 'registry.k8s.io/sig-storage/nfs-subdir-external-provisioner',
    tag: 'v4.0.2',
    pullPolicy: 'IfNotPresent',
  },
  imagePullSecrets: [],
  nfs: {
    server: null,
    path: '/nfs-storage',
    mountOptions: null,
    volumeName: 'nfs-subdir-external-provisioner-root',
    reclaimPolicy: 'Retain',
  },
  storageClass: {
    create: true,
    defaultClass: false,
    name: 'nfs-client',
    allowVolumeExpansion: true,
    reclaimPolicy: 'Delete',
    archiveOnDelete: true,
    onDelete: null,
    pathPattern: null,
    accessModes: 'ReadWriteOnce',
    volumeBindingMode: 'Immediate',
    annotations: {},
  },
  leaderElection: { enabled: true },
  rbac: { create: true },
  podSecurityPolicy: { enabled: false },
  podAnnotations: {},
  podSecurityContext: {},
  securityContext: {},
  serviceAccount: { create: true, annotations: {}, name: null },
  resources: {},
  nodeSelector: {},
  tolerations: [],
  affinity: {},
  labels: {},
  podDisruptionBudget: { enabled: false, maxUnavailable: 1 },
};

/** Of nfs-subdir-external-provisioner 4.0.2, which had fewer of them. */
export const oldestSubdirDefaults: Values = {
  replicaCount: 1,
  strategyType: 'Recreate',
  image: { repository: 'gcr.io/k8s-staging-sig-storage/nfs-subdir-external-provisioner', tag: 'v4.0.0' },
  nfs: { server: null, path: '/nfs-storage', mountOptions: null },
  storageClass: {
    create: true,
    defaultClass: false,
    name: 'nfs-client',
    allowVolumeExpansion: true,
    reclaimPolicy: 'Delete',
    archiveOnDelete: true,
    accessModes: 'ReadWriteOnce',
  },
  leaderElection: { enabled: true },
  rbac: { create: true },
  podSecurityPolicy: { enabled: false },
  serviceAccount: { create: true, name: null },
  resources: {},
  nodeSelector: {},
  tolerations: [],
  affinity: {},
};

const serverClass = {
  create: true,
  defaultClass: false,
  name: 'nfs',
  allowVolumeExpansion: true,
  parameters: {},
  mountOptions: ['vers=3'],
  reclaimPolicy: 'Delete',
};

/** Of nfs-server-provisioner 1.3.1, which had fewer of them; its capabilities were no value. */
export const oldestServerDefaults: Values = {
  replicaCount: 1,
  image: { repository: 'k8s.gcr.io/sig-storage/nfs-provisioner', tag: 'v3.0.0', pullPolicy: 'IfNotPresent' },
  extraArgs: {},
  service: {
    type: 'ClusterIP',
    nfsPort: 2049,
    nlockmgrPort: 32803,
    mountdPort: 20048,
    rquotadPort: 875,
    rpcbindPort: 111,
    statdPort: 662,
    externalIPs: [],
  },
  persistence: { enabled: false, accessMode: 'ReadWriteOnce', size: '1Gi' },
  storageClass: serverClass,
  rbac: { create: true, serviceAccountName: 'default' },
  resources: {},
  nodeSelector: {},
  tolerations: [],
  affinity: {},
};

/** Of nfs-server-provisioner 1.8.0. */
export const serverDefaults: Values = {
  ...oldestServerDefaults,
  image: { repository: 'registry.k8s.io/sig-storage/nfs-provisioner', tag: 'v4.0.8', pullPolicy: 'IfNotPresent' },
  storageClass: { ...serverClass, mountOptions: ['vers=3', 'retrans=2', 'timeo=30'] },
  securityContext: { capabilities: { add: ['DAC_READ_SEARCH', 'SYS_RESOURCE'] } },
  priorityClass: { create: false, name: '', value: 5 },
};
