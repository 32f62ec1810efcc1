import type { KubeObject, Resource } from '../kube-object.ts';

export const leases: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
  verbs: ['get', 'list', 'watch', 'create', 'update'],
};

/** What is done with an object whose name is known, such as a lock. */
export const lockVerbs: readonly string[] = ['get', 'create', 'update'];

/** coordination.k8s.io/v1 Lease. */
export interface Lease extends KubeObject {
  spec?: LeaseRecord;
}

/** `spec` of a Lease. Times are RFC 3339 with microseconds. */
export interface LeaseRecord {
  holderIdentity?: string | null;
  leaseDurationSeconds?: number | null;
  acquireTime?: string | null;
  renewTime?: string | null;
  leaseTransitions?: number | null;
}

/** `metav1.MicroTime` of a moment in milliseconds since the epoch. */
export function microTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}

/** A text that changes whenever the record does. */
export function recordText(record: LeaseRecord | undefined): string {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } = record ?? {};
  return JSON.stringify([
    holderIdentity ?? '',
    leaseDurationSeconds ?? 0,
    acquireTime ?? '',
    renewTime ?? '',
    leaseTransitions ?? 0,
  ]);
}

/** Annotation of a Lease: the process that wrote it. Other programs keep it when they renew the Lease. */
const markKey = 'csi-provisioner/holder';

/** Tells processes with the same holder identity apart. */
interface HolderMark {
  /** That of the record with which the mark was written: beside another record it says nothing about the writer. */
  renewTime: string;
  /** A random name of the process. */
  process: string;
  /** Machine and network namespace in which the process keeps its `HolderSocket` bound. Empty: it has none. */
  place: string;
}

/** The annotations of a Lease, with the mark added. */
export function withMark({ metadata }: Lease, mark: HolderMark): Record<string, string> {
  return { ...metadata.annotations, [markKey]: JSON.stringify(mark) };
}

/** Who wrote the record; undefined where that was another program, or somebody by hand. */
export function markOf({ metadata, spec }: Lease): HolderMark | undefined {
  const text = metadata.annotations?.[markKey];
  if (text === undefined) return undefined;
  try {
    const mark = JSON.parse(text) as Partial<HolderMark> | null;
    const { renewTime, process, place } = mark ?? {};
    const isTied = typeof renewTime === 'string' && renewTime === spec?.renewTime;
    if (!isTied || typeof process !== 'string' || typeof place !== 'string') return undefined;
    return { renewTime, process, place };
  } catch {
    return undefined;
  }
}

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
