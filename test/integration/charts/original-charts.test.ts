/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** What our charts render, against the public charts of the same names, in the folder that `ORIGINAL_CHARTS` names. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { KubernetesObject, V1Role } from '@kubernetes/client-node';
import { ChartObjects } from '../../support/helm/chart-objects.ts';
import { chartsFolder, type Rendering, type Values } from '../../support/helm/helm.ts';
import { describeWithHelms, helmsForTests } from '../../support/helm/helm-for-tests.ts';
import { originalCharts } from '../../support/helm/original-releases.ts';

const originals = originalCharts();
const skip = originals === undefined && 'ORIGINAL_CHARTS names no folder with the public charts';
const share = { server: '10.0.0.5', path: '/srv/nfs' };
const everyPodField = {
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'a', operator: 'Exists' }],
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] } },
  resources: { limits: { cpu: 1, memory: '64Mi' } },
  imagePullSecrets: [{ name: 's' }],
  podSecurityContext: { fsGroup: 1 },
  securityContext: { runAsUser: 0 },
};

const cases: Record<string, { title: string; values: Values; options?: Partial<Rendering> }[]> = {
  'nfs-subdir-external-provisioner': [
    { title: 'the server alone', values: { nfs: share } },
    { title: 'mount options', values: { nfs: { ...share, mountOptions: ['nfsvers=4.1', 'hard'], volumeName: 'v' } } },
    { title: 'build mode', values: { nfs: { mountOptions: ['hard'] }, buildMode: true } },
    {
      title: 'all fields of Pods',
      values: { nfs: share, ...everyPodField, priorityClassName: 'p', podAnnotations: { a: 'b' } },
    },
    { title: 'other names', values: { nfs: share, nameOverride: 'n', fullnameOverride: 'f' } },
    {
      title: 'labels and a budget',
      values: { nfs: share, labels: { a: 'b' }, podDisruptionBudget: { enabled: true } },
    },
    {
      title: 'no objects that can be left out',
      values: { nfs: share, ...withoutCreation('rbac', 'serviceAccount', 'storageClass') },
    },
    { title: 'texts as booleans', values: { nfs: share, storageClass: { create: 'false', defaultClass: 'false' } } },
    {
      title: 'each field of the class',
      values: {
        nfs: share,
        storageClass: {
          provisionerName: 'x/y',
          defaultClass: true,
          name: 'c',
          allowVolumeExpansion: 'no',
          reclaimPolicy: 'Retain',
          archiveOnDelete: null,
          onDelete: true,
          pathPattern: '${.PVC.namespace}',
          volumeBindingMode: 'WaitForFirstConsumer',
          annotations: { a: 'b' },
        },
      },
    },
    {
      title: 'replicas',
      values: { nfs: share, replicaCount: '2', strategyType: '', leaderElection: { enabled: false } },
    },
    { title: 'a long name', values: { nfs: share }, options: { release: 'a'.repeat(51) } },
  ],
  'nfs-server-provisioner': [
    { title: 'nothing', values: {} },
    { title: 'a claim', values: { persistence: { enabled: true, storageClass: '-', size: '5Gi' } } },
    {
      title: 'a claim that exists',
      values: { persistence: { enabled: true, existingClaim: '{{ .Release.Name }}-c' } },
    },
    { title: 'all fields of Pods', values: everyPodField },
    { title: 'other names', values: { nameOverride: 'n', fullnameOverride: 'f' } },
    {
      title: 'flags',
      values: { extraArgs: { 'grace-period': 10, 'leader-elect': true, 'export-subnet': '*', v: '4' } },
    },
    {
      title: 'node ports',
      values: {
        service: {
          type: 'NodePort',
          nfsPort: 1,
          nfsNodePort: 30_001,
          mountdNodePort: '30002',
          externalIPs: ['192.0.2.1'],
        },
      },
    },
    {
      title: 'each field of the class',
      values: {
        storageClass: {
          name: 'c',
          defaultClass: true,
          provisionerName: 'x/y',
          allowVolumeExpansion: false,
          parameters: { gid: '5' },
          mountOptions: null,
          reclaimPolicy: 'Retain',
        },
      },
    },
    { title: 'no rights', values: { rbac: { create: false, serviceAccountName: 's' } } },
    { title: 'a priority class', values: { priorityClass: { create: true, name: 'p', value: 7 } } },
    { title: 'removed capabilities', values: { securityContext: null } },
  ],
};

describeWithHelms(
  await helmsForTests(),
  'what our chart renders is what the public one does',
  (helm) => {
    for (const [chart, rows] of Object.entries(cases)) {
      for (const { title, values, options } of rows) {
        test(`by ${chart} with ${title}`, async () => {
          const render = async (folder: string): Promise<ChartObjects> =>
            new ChartObjects(await helm.template({ chart: join(folder, chart), values, ...options }));
          const [original, ours] = await Promise.all([render(originals ?? ''), render(chartsFolder)]);
          original.container.image = ours.container.image ?? '';
          assert.deepEqual(comparable(ours), comparable(original));
        });
      }
    }
  },
  { skip },
);

function withoutCreation(...sections: readonly string[]): Values {
  return Object.fromEntries(sections.map((section) => [section, { create: false }]));
}

/** By `Kind name`, without what is meant to differ: the label `chart`, Leases, a description, and the Role of one chart. */
function comparable({ all }: ChartObjects): unknown {
  const isAdded = ({ kind = '', metadata }: KubernetesObject): boolean =>
    metadata?.labels?.['chart']?.startsWith('nfs-server') === true && ['Role', 'RoleBinding'].includes(kind);
  const kept = all.filter((object) => !isAdded(object)).map(withoutLeases);
  return Object.fromEntries(
    kept.map((object) => [`${object.kind ?? ''} ${object.metadata?.name ?? ''}`, plain(object)] as const).sort(),
  );
}

function withoutLeases(object: KubernetesObject): KubernetesObject {
  const { rules } = object as V1Role;
  return rules === undefined
    ? object
    : ({ ...object, rules: rules.filter(({ resources }) => !resources?.includes('leases')) } as KubernetesObject);
}

/** As the API server reads it: null and what is empty are absent. */
function plain(object: KubernetesObject): unknown {
  return JSON.parse(JSON.stringify(object), function (key, value: unknown) {
    const isEmpty = typeof value === 'object' && (value === null || Object.keys(value).length === 0);
    return isEmpty || ['chart', 'description'].includes(key) || (key === 'value' && value === '') ? undefined : value;
  });
}
