/** The kinds that an explanation reads besides claims, volumes and classes, with the fields that it reads of them. */
import type { KubeObject, ObjectMeta, Resource } from '../kube/kube-object.ts';
import type { NodeSelectorRequirement, PersistentVolumeClaim, QuantityText } from '../provision/objects.ts';

/** core/v1 Event. */
export interface ClusterEvent extends KubeObject {
  type?: string;
  reason?: string;
  message?: string;
  count?: number | null;
  /** Set by those that record through events.k8s.io, which do not set `count` and the two timestamps. */
  series?: { count?: number; lastObservedTime?: string } | null;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  source?: { component?: string };
  reportingComponent?: string;
  /** What it is about. */
  involvedObject?: { kind?: string; name?: string };
}

/** core/v1 Namespace. */
export interface Namespace extends KubeObject {
  status?: { conditions?: { type: string; status: string; message?: string }[] };
}

/** What external-resizer and kubelets write into the status of a claim that is to be larger. */
export interface ResizedClaim extends PersistentVolumeClaim {
  status?: PersistentVolumeClaim['status'] & {
    conditions?: { type: string; status: string; message?: string; lastTransitionTime?: string | null }[];
    allocatedResourceStatuses?: Record<string, string>;
  };
}

/** core/v1 Pod. */
export interface Pod extends KubeObject {
  metadata: PodMeta;
  spec?: {
    nodeName?: string;
    schedulerName?: string;
    nodeSelector?: Record<string, string>;
    affinity?: {
      nodeAffinity?: {
        requiredDuringSchedulingIgnoredDuringExecution?: {
          nodeSelectorTerms?: {
            matchExpressions?: NodeSelectorRequirement[];
            matchFields?: NodeSelectorRequirement[];
          }[];
        };
      };
    };
    schedulingGates?: { name: string }[];
    tolerations?: { key?: string }[];
    securityContext?: { runAsUser?: number; fsGroup?: number };
    containers?: Container[];
    imagePullSecrets?: { name?: string }[];
    initContainers?: Container[];
    volumes?: { name: string; persistentVolumeClaim?: { claimName: string }; ephemeral?: object }[];
  };
  status?: {
    phase?: string;
    /** The node on which the scheduler makes room for it. */
    nominatedNodeName?: string;
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
    conditions?: {
      type: string;
      status: string;
      reason?: string;
      message?: string;
      lastTransitionTime?: string | null;
    }[];
  };
}

export interface Container {
  name: string;
  image?: string;
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

export interface ContainerStatus {
  name: string;
  state?: { waiting?: { reason?: string; message?: string }; running?: object };
  lastState?: { terminated?: { exitCode?: number; reason?: string; message?: string } };
}

interface PodMeta extends ObjectMeta {
  /** 0: its kubelet is done with it, or it was deleted by force. */
  deletionGracePeriodSeconds?: number | null;
  managedFields?: { manager?: string; time?: string; fieldsV1?: { 'f:spec'?: { 'f:nodeName'?: object } } }[];
}

interface ClaimUse {
  name: string;
  /** By its name in the Pod. */
  volume: string;
  isEphemeral: boolean;
}

/** The claims that a Pod uses; that of an ephemeral volume is named after both. */
export function claimsOf({ metadata, spec }: Pod): ClaimUse[] {
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }): ClaimUse[] => {
    if (persistentVolumeClaim !== undefined)
      return [{ name: persistentVolumeClaim.claimName, volume: name, isEphemeral: false }];
    return ephemeral === undefined ? [] : [{ name: `${metadata.name}-${name}`, volume: name, isEphemeral: true }];
  });
}

/** Reasons for which a container is created a moment later. */
const usualWaits = new Set(['', 'ContainerCreating', 'PodInitializing']);

/** Its containers that wait for something that does not come by itself, such as their turn after a crash. */
export function waitingOf({ status }: Pod): ContainerStatus[] {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return all.filter(({ state }) => !usualWaits.has(state?.waiting?.reason ?? ''));
}

/** Whether a Pod has a claim among its volumes. */
export function usesClaim(pod: Pod, claimName: string): boolean {
  return claimsOf(pod).some(({ name }) => name === claimName);
}

/** Whether a Pod has an ephemeral volume whose claim must be of this name, and this one was not created for it. */
export function isBlockedBy(pod: Pod, { metadata }: KubeObject): boolean {
  const uses = claimsOf(pod).filter(({ name }) => name === metadata.name);
  return uses.length > 0 && uses.every(({ isEphemeral }) => isEphemeral) && !isControlledBy(metadata, pod);
}

/** Whether kube-controller-manager keeps a claim that is being deleted for a Pod, which may have ended (its `podUsesPVCForDeletion`). */
export function holdsClaim(pod: Pod, { metadata }: KubeObject): boolean {
  if ((pod.spec?.nodeName ?? '') === '') return false; // none is given to it while the claim is being deleted
  const isShutDown = pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionGracePeriodSeconds === 0;
  return claimsOf(pod).some(
    ({ name, isEphemeral }) =>
      name === metadata.name && (!isEphemeral || (!isShutDown && isControlledBy(metadata, pod))),
  );
}

function isControlledBy({ ownerReferences = [] }: ObjectMeta, { metadata }: KubeObject): boolean {
  return ownerReferences.some(({ controller, uid }) => controller === true && uid === metadata.uid);
}

/** core/v1 Node: its labels, whether Pods may run there, and which volumes its kubelet still uses. */
export interface ClusterNode extends KubeObject {
  spec?: { unschedulable?: boolean; taints?: { key: string; effect: string }[] };
  status?: {
    conditions?: { type: string; status: string; reason?: string; lastTransitionTime?: string }[];
    volumesInUse?: string[];
  };
}

/** storage.k8s.io/v1 CSIDriver. */
export interface CsiDriver extends KubeObject {
  /** `storageCapacity`: the scheduler compares the published capacity with what a claim requests. */
  spec?: { storageCapacity?: boolean | null };
}

/** storage.k8s.io/v1 CSIStorageCapacity: what a provisioner publishes for a class in one segment. */
export interface StorageCapacity extends KubeObject {
  storageClassName: string;
  /** Absent: no node at all. Empty: every node. */
  nodeTopology?: {
    matchLabels?: Record<string, string> | null;
    matchExpressions?: NodeSelectorRequirement[] | null;
  } | null;
  capacity?: QuantityText;
  /** Max size of a volume. Absent: unknown. */
  maximumVolumeSize?: QuantityText;
}

/** storage.k8s.io/v1 CSINode. */
export interface CsiNode extends KubeObject {
  spec?: { drivers?: { name: string; topologyKeys?: string[] | null }[] | null };
}

/** storage.k8s.io/v1 VolumeAttachment. */
export interface Attachment extends KubeObject {
  spec?: { attacher?: string; nodeName?: string; source?: { persistentVolumeName?: string } };
  status?: { attached?: boolean; attachError?: { message?: string }; detachError?: { message?: string } };
}

/** snapshot.storage.k8s.io/v1 VolumeSnapshot. */
export interface Snapshot extends KubeObject {
  spec?: {
    volumeSnapshotClassName?: string;
    source?: { persistentVolumeClaimName?: string; volumeSnapshotContentName?: string };
  };
  status?: {
    boundVolumeSnapshotContentName?: string;
    readyToUse?: boolean;
    restoreSize?: QuantityText;
    error?: { message?: string; time?: string };
  };
}

/** snapshot.storage.k8s.io/v1 VolumeSnapshotContent. */
export interface SnapshotContent extends KubeObject {
  spec?: {
    driver?: string;
    deletionPolicy?: string;
    source?: { volumeHandle?: string };
    sourceVolumeMode?: string;
    volumeSnapshotRef?: { namespace?: string; name?: string; uid?: string };
  };
  status?: object;
}

/** snapshot.storage.k8s.io/v1 VolumeSnapshotClass. */
export interface SnapshotClass extends KubeObject {
  driver?: string;
}

/** populator.storage.k8s.io/v1beta1 VolumePopulator: a kind of data source that somebody fills volumes from. */
export interface VolumePopulator extends KubeObject {
  sourceKind?: { group?: string; kind?: string };
}

/** storage.k8s.io VolumeAttributesClass. */
export interface AttributesClass extends KubeObject {
  driverName?: string;
}

function resource(group: string, version: string, kind: string, namespaced: boolean, plural?: string): Resource {
  return { group, version, kind, namespaced, plural: plural ?? `${kind.toLowerCase()}s` };
}

export const events = resource('', 'v1', 'Event', true);
export const pods = resource('', 'v1', 'Pod', true);
export const nodes = resource('', 'v1', 'Node', false);
export const namespaces = resource('', 'v1', 'Namespace', false);
export const resourceQuotas = resource('', 'v1', 'ResourceQuota', true);
export const serviceAccounts = resource('', 'v1', 'ServiceAccount', true);
export const priorityClasses = resource('scheduling.k8s.io', 'v1', 'PriorityClass', false, 'priorityclasses');
export const secrets = resource('', 'v1', 'Secret', true);
export const csiDrivers = resource('storage.k8s.io', 'v1', 'CSIDriver', false);
export const csiNodes = resource('storage.k8s.io', 'v1', 'CSINode', false);
export const attachments = resource('storage.k8s.io', 'v1', 'VolumeAttachment', false);
export const storageCapacities = resource('storage.k8s.io', 'v1', 'CSIStorageCapacity', true, 'csistoragecapacities');
export const snapshots = resource('snapshot.storage.k8s.io', 'v1', 'VolumeSnapshot', true);
export const snapshotContents = resource(snapshots.group, 'v1', 'VolumeSnapshotContent', false);
export const snapshotClasses = resource(snapshots.group, 'v1', 'VolumeSnapshotClass', false, 'volumesnapshotclasses');
export const volumePopulators = resource('populator.storage.k8s.io', 'v1beta1', 'VolumePopulator', false);
export const attributesClasses = resource(
  'storage.k8s.io',
  'v1',
  'VolumeAttributesClass',
  false,
  'volumeattributesclasses',
);
/** Served by 1.31 to 1.36; before 1.34 it was the only version. */
export const olderAttributesClasses: Resource = { ...attributesClasses, version: 'v1beta1' };
