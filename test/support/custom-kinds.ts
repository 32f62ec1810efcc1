/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { ifFound, type Admin } from './admin.ts';
import type { Cluster } from './cluster.ts';
import { eventually } from './eventually.ts';

/** A kind that a real cluster only has once somebody installs it; the sandbox has these built in. */
export interface CustomKind {
  group: string;
  version: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  /** Whether the status is written apart from the rest. */
  status: boolean;
}

export const volumeSnapshotKind = {
  group: 'snapshot.storage.k8s.io',
  version: 'v1',
  kind: 'VolumeSnapshot',
  plural: 'volumesnapshots',
  namespaced: true,
  status: true,
} as const satisfies CustomKind;

export const volumeSnapshotContentKind = {
  ...volumeSnapshotKind,
  kind: 'VolumeSnapshotContent',
  plural: 'volumesnapshotcontents',
  namespaced: false,
} as const satisfies CustomKind;

export const volumeSnapshotClassKind = {
  ...volumeSnapshotContentKind,
  kind: 'VolumeSnapshotClass',
  plural: 'volumesnapshotclasses',
  status: false,
} as const satisfies CustomKind;

export const referenceGrantKind = {
  group: 'gateway.networking.k8s.io',
  version: 'v1beta1',
  kind: 'ReferenceGrant',
  plural: 'referencegrants',
  namespaced: true,
  status: false,
} as const satisfies CustomKind;

/** Of the Prometheus operator. */
export const serviceMonitorKind = {
  group: 'monitoring.coreos.com',
  version: 'v1',
  kind: 'ServiceMonitor',
  plural: 'servicemonitors',
  namespaced: true,
  status: false,
} as const satisfies CustomKind;

export const prometheusRuleKind = {
  ...serviceMonitorKind,
  kind: 'PrometheusRule',
  plural: 'prometheusrules',
} as const satisfies CustomKind;

/**
 * Installs kinds, without schemas, and waits until they are served. Does nothing in the sandbox.
 *
 * @returns a function that removes them and all their objects.
 */
export async function installKinds(
  { name: clusterName }: Cluster,
  admin: Admin,
  kinds: readonly CustomKind[],
): Promise<() => Promise<void>> {
  if (clusterName === 'sandbox') return () => Promise.resolve();
  for (const kind of kinds) await install(admin, kind);
  return async () => {
    for (const { plural, group } of kinds) {
      const name = `${plural}.${group}`;
      await ifFound(admin.extensions.deleteCustomResourceDefinition({ name }));
      await eventually(async () => {
        const left = await ifFound(admin.extensions.readCustomResourceDefinition({ name }));
        if (left !== undefined) throw new Error(`${name} is still there: ${JSON.stringify(left.status?.conditions)}`);
      });
    }
  };
}

async function install({ extensions, custom }: Admin, kind: CustomKind): Promise<void> {
  const { group, version, plural } = kind;
  await extensions.createCustomResourceDefinition({
    body: {
      metadata: {
        name: `${plural}.${group}`,
        // Groups of Kubernetes itself are refused without a word on who agreed to them.
        annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
      },
      spec: {
        group,
        scope: kind.namespaced ? 'Namespaced' : 'Cluster',
        names: { kind: kind.kind, plural, singular: kind.kind.toLowerCase(), listKind: `${kind.kind}List` },
        versions: [
          {
            name: version,
            served: true,
            storage: true,
            ...(kind.status && { subresources: { status: {} } }),
            schema: { openAPIV3Schema: { type: 'object', x_kubernetes_preserve_unknown_fields: true } },
          },
        ],
      },
    },
  });
  await eventually(() => custom.listClusterCustomObject({ group, version, plural }));
}
