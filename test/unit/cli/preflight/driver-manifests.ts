/** Manifests of a made-up driver, as a cluster would hold them, and what `preflight` says of them. */
import { Readable } from 'node:stream';
import {
  preflightReport,
  type PreflightReport,
  type SidecarReport,
} from '../../../../src/cli/preflight/preflight-report.ts';
import { readManifests } from '../../../../src/cli/preflight/read-manifests.ts';

export type Json = Record<string, unknown>;

export const rbac = 'rbac.authorization.k8s.io/v1';

export function rule(apiGroup: string, resources: string, verbs: string, more: Json = {}): Json {
  return { apiGroups: [apiGroup], resources: [resources], verbs: verbs.split(' '), ...more };
}

/** Those of the Go sidecar's manifest, so far as they are cluster-wide. */
export const clusterRules: readonly Json[] = [
  rule('', 'persistentvolumes', 'get list watch create patch delete'),
  rule('', 'persistentvolumeclaims', 'get list watch update'),
  rule('storage.k8s.io', 'storageclasses', 'get list watch'),
  rule('', 'events', 'list watch create update patch'),
  rule('snapshot.storage.k8s.io', 'volumesnapshots', 'get list watch update'),
  rule('snapshot.storage.k8s.io', 'volumesnapshotcontents', 'get list'),
  rule('storage.k8s.io', 'csinodes', 'get list watch'),
  rule('', 'nodes', 'get list watch'),
  rule('storage.k8s.io', 'volumeattachments', 'get list watch'),
  rule('storage.k8s.io', 'volumeattributesclasses', 'get'),
  rule('', 'secrets', 'get'),
];

export const leaseRules: readonly Json[] = [
  rule('coordination.k8s.io', 'leases', 'get list watch create update delete'),
];

export function role(kind: 'Role' | 'ClusterRole', name: string, rules: readonly Json[], more: Json = {}): Json {
  return {
    apiVersion: rbac,
    kind,
    metadata: { name, ...(kind === 'Role' && { namespace: 'storage' }) },
    rules,
    ...more,
  };
}

export function binding(kind: 'RoleBinding' | 'ClusterRoleBinding', roleRef: string, more: Json = {}): Json {
  const [refKind = '', name = ''] = roleRef.split('/');
  return {
    apiVersion: rbac,
    kind,
    metadata: { name: `${name}-binding`, ...(kind === 'RoleBinding' && { namespace: 'storage' }) },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: refKind, name },
    subjects: [{ kind: 'ServiceAccount', name: 'driver', namespace: 'storage' }],
    ...more,
  };
}

/** Roles and bindings of the account `storage/driver`. */
export function access(cluster: readonly Json[] = clusterRules, namespaced: readonly Json[] = leaseRules): Json[] {
  return [
    role('ClusterRole', 'driver', cluster),
    binding('ClusterRoleBinding', 'ClusterRole/driver'),
    role('Role', 'driver', namespaced),
    binding('RoleBinding', 'Role/driver'),
  ];
}

export interface DriverOptions {
  kind?: string;
  /** Of the sidecar's container. */
  container?: Json;
  args?: readonly string[];
  image?: string;
  /** Further containers. */
  beside?: readonly Json[];
  /** `spec` of the Pod. */
  pod?: Json;
  /** `spec` of the workload. */
  spec?: Json;
}

/** A Deployment that leaves nothing to say. */
export function workload(options: DriverOptions = {}): Json {
  const {
    kind = 'Deployment',
    container = {},
    args = ['--csi-address=/csi/csi.sock', '--leader-election'],
    image = 'registry.k8s.io/sig-storage/csi-provisioner:v6.3.0',
    beside = [],
    pod = {},
    spec = {},
  } = options;
  const sidecar = { name: 'csi-provisioner', image, args, ...container };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'driver-controller', namespace: 'storage' },
    spec: {
      replicas: 1,
      ...spec,
      template: { spec: { serviceAccountName: 'driver', containers: [sidecar, ...beside], ...pod } },
    },
  };
}

/** The report about these objects. */
export async function reportOf(
  objects: readonly Json[],
  options: { namespace?: string; container?: string } = {},
): Promise<PreflightReport> {
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  const read = await readManifests(['-'], { recursive: false, stdin: Readable.from([Buffer.from(text)]) });
  return preflightReport(read, { namespace: undefined, container: undefined, ...options });
}

/** The report about the container `csi-provisioner`, with the access of `access`. */
export async function sidecarOf(options: DriverOptions, objects: readonly Json[] = access()): Promise<SidecarReport> {
  const { sidecars } = await reportOf([workload(options), ...objects]);
  const [first] = sidecars;
  if (first === undefined) throw new Error('no sidecar');
  return first;
}

/** Level and name of each finding, such as `must command`. */
export function named({ findings }: SidecarReport): string[] {
  return findings.map(({ level, finding }) => `${level} ${finding}`);
}
