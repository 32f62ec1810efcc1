/** The objects that can hold the record of an election. */
import type { KubeObject, Resource } from '../kube-object.ts';
import { type Lease, type LeaseRecord, leases } from './lease-record.ts';

/** Where the record of an election is kept: in a Lease, or as client-go kept it before there were Leases. */
export type LockName = 'lease' | 'endpoints';

/** How one kind of object holds the record. */
export interface LockKind {
  readonly resource: Resource;
  /** The object as a Lease; what else is in it is kept beside the record. */
  readonly toLease: (object: KubeObject) => Lease;
  /** The object to write for a Lease that `toLease` gave, or a new one. */
  readonly fromLease: (lease: Lease) => KubeObject;
}

/** The annotation with the record, as JSON (client-go, package `resourcelock`). */
const recordKey = 'control-plane.alpha.kubernetes.io/leader';

const endpoints: Resource = {
  group: '',
  version: 'v1',
  plural: 'endpoints',
  kind: 'Endpoints',
  namespaced: true,
  verbs: ['get', 'list', 'watch', 'create', 'update'],
};

/** Each kind of lock. */
export const lockKinds: Readonly<Record<LockName, LockKind>> = {
  lease: {
    resource: leases,
    toLease: (object) => object,
    fromLease: (lease) => ({ ...lease, apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }),
  },
  endpoints: {
    resource: endpoints,
    toLease: (object) => ({ ...object, spec: recordIn(object) }),
    fromLease: ({ spec = {}, ...object }) => {
      const { annotations } = object.metadata;
      const metadata = { ...object.metadata, annotations: { ...annotations, [recordKey]: annotationOf(spec) } };
      return { ...object, apiVersion: 'v1', kind: 'Endpoints', metadata };
    },
  },
};

/** A text that is no record counts as a lock that nobody holds. */
function recordIn(object: KubeObject): LeaseRecord {
  const text = object.metadata.annotations?.[recordKey];
  if (text === undefined) return {};
  try {
    const { leaderTransitions, ...record } = JSON.parse(text) as LeaseRecord & { leaderTransitions?: number };
    return { ...record, ...(leaderTransitions !== undefined && { leaseTransitions: leaderTransitions }) };
  } catch {
    return {};
  }
}

/** Times in whole seconds, which is all that older programs read. */
function annotationOf({ leaseTransitions, acquireTime, renewTime, ...record }: LeaseRecord): string {
  return JSON.stringify({
    ...record,
    acquireTime: wholeSeconds(acquireTime),
    renewTime: wholeSeconds(renewTime),
    leaderTransitions: leaseTransitions ?? 0,
  });
}

function wholeSeconds(time: string | null | undefined): string | null {
  return time?.replace(/\.\d+Z$/, 'Z') ?? null;
}
