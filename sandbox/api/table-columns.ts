import { ageText } from './age.ts';
import type { SandboxObject } from './client.ts';
import { arrayAt, at, objectAt, stringAt, stringsAt } from './json.ts';
import type { ResourceType } from './resource-type.ts';

/** One column of a table. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  /** `name` marks the column kubectl takes for the object's name. */
  readonly format: '' | 'name';
  /** 0: always shown; 1: only with `-o wide`. */
  readonly priority: 0 | 1;
  readonly cell: (object: SandboxObject, nowMs: number) => unknown;
}

type Cell = Column['cell'];

const none = '<none>';
const unset = '<unset>';

const nameColumn: Column = column('Name', (object) => object.metadata.name, { format: 'name' });
const ageColumn: Column = column('Age', ({ metadata }, nowMs) => ageText(metadata.creationTimestamp, nowMs));

const columnsByStorage = new Map<string, readonly Column[]>([
  [
    'persistentvolumes',
    [
      nameColumn,
      column('Capacity', (pv) => stringAt(pv, 'spec', 'capacity', 'storage')),
      column('Access Modes', (pv) => shortModes(stringsAt(pv, 'spec', 'accessModes'))),
      column('Reclaim Policy', (pv) => stringAt(pv, 'spec', 'persistentVolumeReclaimPolicy')),
      column('Status', phaseOrTerminating),
      column('Claim', (pv) => {
        const [namespace, name] = [
          stringAt(pv, 'spec', 'claimRef', 'namespace'),
          stringAt(pv, 'spec', 'claimRef', 'name'),
        ];
        return name === '' ? '' : `${namespace}/${name}`;
      }),
      column('StorageClass', classOf),
      column('VolumeAttributesClass', (pv) => stringAt(pv, 'spec', 'volumeAttributesClassName') || unset),
      column('Reason', (pv) => stringAt(pv, 'status', 'reason')),
      ageColumn,
      wide('VolumeMode', (pv) => stringAt(pv, 'spec', 'volumeMode') || unset),
    ],
  ],
  [
    'persistentvolumeclaims',
    [
      nameColumn,
      column('Status', phaseOrTerminating),
      column('Volume', (pvc) => stringAt(pvc, 'spec', 'volumeName')),
      column('Capacity', (pvc) => (isAssigned(pvc) ? stringAt(pvc, 'status', 'capacity', 'storage') : '')),
      column('Access Modes', (pvc) => (isAssigned(pvc) ? shortModes(stringsAt(pvc, 'status', 'accessModes')) : '')),
      column('StorageClass', classOf),
      column('VolumeAttributesClass', (pvc) => stringAt(pvc, 'spec', 'volumeAttributesClassName') || unset),
      ageColumn,
      wide('VolumeMode', (pvc) => stringAt(pvc, 'spec', 'volumeMode') || unset),
    ],
  ],
  [
    'storageclasses.storage.k8s.io',
    [
      column('Name', ({ metadata }) => metadata.name + (isDefaultClass(metadata.annotations) ? ' (default)' : ''), {
        format: 'name',
      }),
      column('Provisioner', (sc) => stringAt(sc, 'provisioner')),
      column('ReclaimPolicy', (sc) => stringAt(sc, 'reclaimPolicy') || 'Delete'),
      column('VolumeBindingMode', (sc) => stringAt(sc, 'volumeBindingMode') || 'Immediate'),
      column('AllowVolumeExpansion', (sc) => String(sc['allowVolumeExpansion'] === true)),
      ageColumn,
    ],
  ],
  [
    'events',
    [
      column('Last Seen', (event, nowMs) => ageText(lastSeen(event), nowMs)),
      column('Type', (event) => stringAt(event, 'type')),
      column('Reason', (event) => stringAt(event, 'reason')),
      column('Object', (event) => {
        const [kind, name] = [stringAt(event, 'involvedObject', 'kind'), stringAt(event, 'involvedObject', 'name')];
        return `${kind.toLowerCase()}/${name}`;
      }),
      wide('Subobject', (event) => stringAt(event, 'involvedObject', 'fieldPath')),
      wide('Source', (event) => {
        const component = stringAt(event, 'source', 'component') || stringAt(event, 'reportingComponent');
        const host = stringAt(event, 'source', 'host') || stringAt(event, 'reportingInstance');
        return host === '' ? component : `${component}, ${host}`;
      }),
      column('Message', (event) => stringAt(event, 'message').trim()),
      wide('First Seen', (event, nowMs) => ageText(event['firstTimestamp'] ?? event['eventTime'], nowMs)),
      wide('Count', (event) => at(event, 'series', 'count') ?? event['count'] ?? 1, 'integer'),
      wide('Name', (event) => event.metadata.name),
    ],
  ],
  [
    'pods',
    [
      nameColumn,
      column('Ready', (pod) => {
        const statuses = arrayAt(pod, 'status', 'containerStatuses');
        const ready = statuses.filter((status) => objectAt(status)['ready'] === true).length;
        return `${ready}/${arrayAt(pod, 'spec', 'containers').length}`;
      }),
      column('Status', (pod) =>
        pod.metadata.deletionTimestamp === undefined
          ? stringAt(pod, 'status', 'reason') || stringAt(pod, 'status', 'phase')
          : 'Terminating',
      ),
      column('Restarts', (pod) =>
        String(
          arrayAt(pod, 'status', 'containerStatuses')
            .map((status) => Number(objectAt(status)['restartCount'] ?? 0))
            .reduce((sum, count) => sum + count, 0),
        ),
      ),
      ageColumn,
      wide('IP', (pod) => stringAt(pod, 'status', 'podIP') || none),
      wide('Node', (pod) => stringAt(pod, 'spec', 'nodeName') || none),
      wide('Nominated Node', (pod) => stringAt(pod, 'status', 'nominatedNodeName') || none),
      wide('Readiness Gates', () => none),
    ],
  ],
  [
    'nodes',
    [
      nameColumn,
      column('Status', (node) => {
        const ready = arrayAt(node, 'status', 'conditions').find((each) => stringAt(each, 'type') === 'Ready');
        const status = ready === undefined ? 'Unknown' : stringAt(ready, 'status') === 'True' ? 'Ready' : 'NotReady';
        return at(node, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status;
      }),
      column('Roles', ({ metadata }) => {
        const prefix = 'node-role.kubernetes.io/';
        const roles = Object.keys(metadata.labels ?? {}).filter((label) => label.startsWith(prefix));
        return roles.map((label) => label.slice(prefix.length)).join(',') || none;
      }),
      ageColumn,
      column('Version', (node) => stringAt(node, 'status', 'nodeInfo', 'kubeletVersion')),
    ],
  ],
  [
    'leases.coordination.k8s.io',
    [nameColumn, column('Holder', (lease) => stringAt(lease, 'spec', 'holderIdentity')), ageColumn],
  ],
  [
    'csinodes.storage.k8s.io',
    [
      nameColumn,
      column('Drivers', (csiNode) => arrayAt(csiNode, 'spec', 'drivers').length, { type: 'integer' }),
      ageColumn,
    ],
  ],
  [
    'csidrivers.storage.k8s.io',
    [
      nameColumn,
      column('AttachRequired', (driver) => String(at(driver, 'spec', 'attachRequired') !== false)),
      column('PodInfoOnMount', (driver) => String(at(driver, 'spec', 'podInfoOnMount') === true)),
      column('StorageCapacity', (driver) => String(at(driver, 'spec', 'storageCapacity') === true)),
      column('TokenRequests', (driver) => {
        const audiences = arrayAt(driver, 'spec', 'tokenRequests').map((request) => stringAt(request, 'audience'));
        return audiences.length === 0 ? unset : audiences.join(',');
      }),
      column('RequiresRepublish', (driver) => String(at(driver, 'spec', 'requiresRepublish') === true)),
      column('Modes', (driver) => stringsAt(driver, 'spec', 'volumeLifecycleModes').join(',')),
      ageColumn,
    ],
  ],
  [
    'csistoragecapacities.storage.k8s.io',
    [
      nameColumn,
      column('StorageClassName', (object) => stringAt(object, 'storageClassName')),
      column('Capacity', (object) => stringAt(object, 'capacity') || unset),
    ],
  ],
  [
    'volumeattachments.storage.k8s.io',
    [
      nameColumn,
      column('Attacher', (object) => stringAt(object, 'spec', 'attacher')),
      column('PV', (object) => stringAt(object, 'spec', 'source', 'persistentVolumeName')),
      column('Node', (object) => stringAt(object, 'spec', 'nodeName')),
      column('Attached', (object) => String(at(object, 'status', 'attached') === true)),
      ageColumn,
    ],
  ],
  [
    'volumeattributesclasses.storage.k8s.io',
    [nameColumn, column('DriverName', (object) => stringAt(object, 'driverName')), ageColumn],
  ],
  ['namespaces', [nameColumn, column('Status', (object) => stringAt(object, 'status', 'phase')), ageColumn]],
  [
    'secrets',
    [
      nameColumn,
      column('Type', (object) => stringAt(object, 'type')),
      column('Data', (object) => Object.keys(objectAt(object, 'data')).length, { type: 'integer' }),
      ageColumn,
    ],
  ],
  [
    'configmaps',
    [
      nameColumn,
      column(
        'Data',
        (object) => Object.keys(objectAt(object, 'data')).length + Object.keys(objectAt(object, 'binaryData')).length,
        { type: 'integer' },
      ),
      ageColumn,
    ],
  ],
  [
    'serviceaccounts',
    [nameColumn, column('Secrets', (object) => arrayAt(object, 'secrets').length, { type: 'integer' }), ageColumn],
  ],
  [
    'volumesnapshots.snapshot.storage.k8s.io',
    [
      nameColumn,
      column('ReadyToUse', (object) => showFlag(at(object, 'status', 'readyToUse'))),
      column('SourcePVC', (object) => stringAt(object, 'spec', 'source', 'persistentVolumeClaimName')),
      column('SourceSnapshotContent', (object) => stringAt(object, 'spec', 'source', 'volumeSnapshotContentName')),
      column('RestoreSize', (object) => stringAt(object, 'status', 'restoreSize')),
      column('SnapshotClass', (object) => stringAt(object, 'spec', 'volumeSnapshotClassName')),
      column('SnapshotContent', (object) => stringAt(object, 'status', 'boundVolumeSnapshotContentName')),
      ageColumn,
    ],
  ],
]);

/** The columns of a resource: those of its printer, or name and age. */
export function columnsOf(type: ResourceType): readonly Column[] {
  return columnsByStorage.get(type.storage) ?? [nameColumn, ageColumn];
}

function column(name: string, cell: Cell, more: { format?: 'name'; type?: Column['type'] } = {}): Column {
  return { name, cell, type: more.type ?? 'string', format: more.format ?? '', priority: 0 };
}

function wide(name: string, cell: Cell, type: Column['type'] = 'string'): Column {
  return { name, cell, type, format: '', priority: 1 };
}

function phaseOrTerminating(object: SandboxObject): string {
  return object.metadata.deletionTimestamp === undefined ? stringAt(object, 'status', 'phase') : 'Terminating';
}

function isAssigned(claim: SandboxObject): boolean {
  return stringAt(claim, 'spec', 'volumeName') !== '';
}

function classOf(object: SandboxObject): string {
  const beta = object.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'];
  return beta ?? stringAt(object, 'spec', 'storageClassName');
}

function isDefaultClass(annotations: Record<string, string> = {}): boolean {
  return ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class'].some(
    (key) => annotations[key] === 'true',
  );
}

const shortModeNames = new Map([
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
]);

/** Access modes in the order that kubectl prints them. */
function shortModes(modes: readonly string[]): string {
  return [...shortModeNames]
    .filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',');
}

function lastSeen(event: SandboxObject): unknown {
  return (
    at(event, 'series', 'lastObservedTime') ?? event['lastTimestamp'] ?? event['eventTime'] ?? event['firstTimestamp']
  );
}

function showFlag(value: unknown): string {
  return typeof value === 'boolean' ? String(value) : '';
}
