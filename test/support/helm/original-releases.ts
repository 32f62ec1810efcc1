/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/**
 * Releases of the two public charts, to upgrade from. Where `ORIGINAL_CHARTS` names a folder with the charts themselves, those
 * are installed; else charts that create what is known of their objects: names, labels, selectors, fields of the class,
 * environment, volumes and permissions.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubernetesObject } from '@kubernetes/client-node';
import type { Values } from './helm.ts';
import { serverDefaults, subdirDefaults } from './original-values.ts';

/** The folder that `ORIGINAL_CHARTS` names; undefined where it is not set, which standard error says loudly. */
export function originalCharts(): string | undefined {
  const folder = process.env['ORIGINAL_CHARTS'];
  if (folder) return folder;
  console.error('\n*** THE ORIGINAL CHARTS ARE NOT TRIED: ORIGINAL_CHARTS names no folder with them ***\n');
  return undefined;
}

/** A release, and what of its values decides about its objects. */
export interface OriginalRelease {
  release: string;
  namespace: string;
  values: Values;
}

const roles = 'rbac.authorization.k8s.io';

/** Writes a chart that creates the objects of nfs-subdir-external-provisioner 4.0.18. @returns its path. */
export async function subdirStandIn(folder: string, release: OriginalRelease): Promise<string> {
  const about = { name: 'nfs-subdir-external-provisioner', version: '4.0.18', appVersion: '4.0.2' };
  return await writeChart(folder, about, subdirDefaults, subdirObjects(release));
}

/** Writes a chart that creates the objects of nfs-server-provisioner 1.8.0. @returns its path. */
export async function serverStandIn(folder: string, release: OriginalRelease): Promise<string> {
  const about = { name: 'nfs-server-provisioner', version: '1.8.0', appVersion: '4.0.8' };
  return await writeChart(folder, about, serverDefaults, serverObjects(release));
}

async function writeChart(
  folder: string,
  about: { name: string; version: string; appVersion: string },
  defaults: Values,
  objects: readonly KubernetesObject[],
): Promise<string> {
  const chart = join(folder, about.name);
  await mkdir(join(chart, 'templates'), { recursive: true });
  await writeFile(join(chart, 'Chart.yaml'), JSON.stringify({ apiVersion: 'v1', ...about }));
  await writeFile(join(chart, 'values.yaml'), JSON.stringify(defaults));
  const text = objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('');
  await writeFile(join(chart, 'templates/objects.yaml'), text);
  return chart;
}

/** What both charts have in common: the full name, the labels of objects, and the selector. */
function commonOf(chart: string, version: string, { release }: OriginalRelease) {
  const selector = { app: chart, release };
  return {
    fullname: `${release}-${chart}`,
    selector,
    labels: { ...selector, heritage: 'Helm', chart: `${chart}-${version}` },
  };
}

interface SubdirValues {
  nfs: { server: string; path: string; mountOptions?: string[] };
  storageClass?: { name?: string };
  strategyType?: string;
}

function subdirObjects(given: OriginalRelease): KubernetesObject[] {
  const chart = 'nfs-subdir-external-provisioner';
  const { fullname, labels, selector } = commonOf(chart, '4.0.18', given);
  const { nfs, storageClass = {}, strategyType = 'Recreate' } = given.values as unknown as SubdirValues;
  const { server, path, mountOptions } = nfs;
  const named = (name: string) => ({ metadata: { name, labels } });
  const subjects = [{ kind: 'ServiceAccount', name: fullname, namespace: given.namespace }];
  const reference = (kind: string, name: string) => ({ subjects, roleRef: { apiGroup: roles, kind, name } });
  const rule = (group: string, resources: string[], verbs: string) => ({
    apiGroups: [group],
    resources,
    verbs: verbs.split(' '),
  });
  const watched = 'get list watch';
  const provisioner = `cluster.local/${fullname}`;
  const volume = `${chart}-root`;
  const objects = [
    { apiVersion: 'v1', kind: 'ServiceAccount', ...named(fullname) },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      ...named(storageClass.name ?? 'nfs-client'),
      provisioner,
      allowVolumeExpansion: true,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
      parameters: { archiveOnDelete: 'true' },
      ...(mountOptions && { mountOptions }),
    },
    {
      apiVersion: `${roles}/v1`,
      kind: 'ClusterRole',
      ...named(`${fullname}-runner`),
      rules: [
        rule('', ['nodes'], watched),
        rule('', ['persistentvolumes'], `${watched} create delete`),
        rule('', ['persistentvolumeclaims'], `${watched} update`),
        rule('storage.k8s.io', ['storageclasses'], watched),
        rule('', ['events'], 'create update patch'),
      ],
    },
    {
      apiVersion: `${roles}/v1`,
      kind: 'ClusterRoleBinding',
      ...named(`run-${fullname}`),
      ...reference('ClusterRole', `${fullname}-runner`),
    },
    {
      apiVersion: `${roles}/v1`,
      kind: 'Role',
      ...named(`leader-locking-${fullname}`),
      rules: [rule('', ['endpoints'], `${watched} create update patch`)],
    },
    {
      apiVersion: `${roles}/v1`,
      kind: 'RoleBinding',
      ...named(`leader-locking-${fullname}`),
      ...reference('Role', `leader-locking-${fullname}`),
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      ...named(fullname),
      spec: {
        replicas: 1,
        strategy: { type: strategyType },
        selector: { matchLabels: selector },
        template: {
          metadata: { labels: selector },
          spec: {
            serviceAccountName: fullname,
            securityContext: {},
            containers: [
              {
                name: chart,
                image: 'registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2',
                imagePullPolicy: 'IfNotPresent',
                securityContext: {},
                env: [
                  { name: 'PROVISIONER_NAME', value: provisioner },
                  { name: 'NFS_SERVER', value: server },
                  { name: 'NFS_PATH', value: path },
                ],
                volumeMounts: [{ name: volume, mountPath: '/persistentvolumes' }],
              },
            ],
            volumes: [
              mountOptions === undefined
                ? { name: volume, nfs: { server, path } }
                : { name: volume, persistentVolumeClaim: { claimName: `pvc-${fullname}` } },
            ],
          },
        },
      },
    },
  ];
  if (mountOptions === undefined) return objects;
  const ofShare = { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem', storageClassName: '' };
  const volumeLabels = { ...labels, [chart]: fullname };
  return [
    ...objects,
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `pv-${fullname}`, labels: volumeLabels },
      spec: {
        ...ofShare,
        capacity: { storage: '10Mi' },
        persistentVolumeReclaimPolicy: 'Retain',
        mountOptions,
        nfs: { server, path },
      },
    } as KubernetesObject,
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      ...named(`pvc-${fullname}`),
      spec: {
        ...ofShare,
        selector: { matchLabels: { [chart]: fullname } },
        resources: { requests: { storage: '10Mi' } },
      },
    } as KubernetesObject,
  ];
}

interface ServerValues {
  persistence?: { enabled: boolean; size?: string };
  storageClass?: { name?: string; mountOptions?: string[] };
}

function serverObjects(given: OriginalRelease): KubernetesObject[] {
  const chart = 'nfs-server-provisioner';
  const { fullname, labels, selector } = commonOf(chart, '1.8.0', given);
  const { persistence, storageClass = {} } = given.values as unknown as ServerValues;
  const named = { metadata: { name: fullname, labels } };
  const rule = (group: string, resources: string[], verbs: string, resourceNames?: string[]) => ({
    apiGroups: [group],
    resources,
    verbs: verbs.split(' '),
    ...(resourceNames && { resourceNames }),
  });
  const provisioner = `cluster.local/${fullname}`;
  const numbers = { nfs: 2049, nlockmgr: 32_803, mountd: 20_048, rquotad: 875, rpcbind: 111, statd: 662 };
  const ports = Object.entries(numbers).flatMap(([name, number]) => [
    { name, number, protocol: 'TCP' },
    { name: `${name}-udp`, number, protocol: 'UDP' },
  ]);
  const claimTemplate = {
    metadata: { name: 'data' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: persistence?.size ?? '1Gi' } },
    },
  };
  const isPersistent = persistence?.enabled === true;
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', ...named },
    {
      apiVersion: `${roles}/v1`,
      kind: 'ClusterRole',
      ...named,
      rules: [
        rule('', ['persistentvolumes'], 'get list watch create delete'),
        rule('', ['persistentvolumeclaims'], 'get list watch update'),
        rule('storage.k8s.io', ['storageclasses'], 'get list watch'),
        rule('', ['events'], 'list watch create update patch'),
        rule('', ['services', 'endpoints'], 'get'),
        rule('extensions', ['podsecuritypolicies'], 'use', ['nfs-provisioner']),
        rule('', ['endpoints'], 'get list watch create delete update patch'),
        rule('security.openshift.io', ['securitycontextconstraints'], 'use', ['privileged']),
      ],
    },
    {
      apiVersion: `${roles}/v1`,
      kind: 'ClusterRoleBinding',
      ...named,
      subjects: [{ kind: 'ServiceAccount', name: fullname, namespace: given.namespace }],
      roleRef: { apiGroup: roles, kind: 'ClusterRole', name: fullname },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      ...named,
      spec: {
        type: 'ClusterIP',
        selector,
        ports: ports.map(({ name, number, protocol }) => ({ name, port: number, targetPort: name, protocol })),
      },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      ...named,
      spec: {
        replicas: 1,
        serviceName: fullname,
        selector: { matchLabels: selector },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: fullname,
            terminationGracePeriodSeconds: 100,
            containers: [
              {
                name: chart,
                image: 'registry.k8s.io/sig-storage/nfs-provisioner:v4.0.8',
                imagePullPolicy: 'IfNotPresent',
                args: [`-provisioner=${provisioner}`],
                env: [
                  { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
                  { name: 'SERVICE_NAME', value: fullname },
                  { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
                ],
                ports: ports.map(({ name, number, protocol }) => ({ name, containerPort: number, protocol })),
                securityContext: { capabilities: { add: ['DAC_READ_SEARCH', 'SYS_RESOURCE'] } },
                volumeMounts: [{ name: 'data', mountPath: '/export' }],
              },
            ],
            ...(!isPersistent && { volumes: [{ name: 'data', emptyDir: {} }] }),
          },
        },
        ...(isPersistent && { volumeClaimTemplates: [claimTemplate] }),
      },
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: storageClass.name ?? 'nfs', labels },
      provisioner,
      reclaimPolicy: 'Delete',
      allowVolumeExpansion: true,
      mountOptions: storageClass.mountOptions ?? ['vers=3', 'retrans=2', 'timeo=30'],
    },
  ] as KubernetesObject[];
}
