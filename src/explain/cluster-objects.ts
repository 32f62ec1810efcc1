/** The kinds that an explanation reads besides claims, volumes and classes, with the fields that it reads of them. */
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import type { QuantityText } from '../provision/objects.ts';

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
}

/** core/v1 Pod. */
export interface Pod extends KubeObject {
  spec?: {
    nodeName?: string;
    schedulerName?: string;
    schedulingGates?: { name: string }[];
    volumes?: { name: string; persistentVolumeClaim?: { claimName: string }; ephemeral?: object }[];
  };
  status?: {
    phase?: string;
    /** The node on which the scheduler makes room for it. */
    nominatedNodeName?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
  };
}

/** Whether a Pod has a claim among its volumes; of an ephemeral volume it is named after both. */
export function usesClaim({ metadata, spec }: Pod, claimName: string): boolean {
  return (spec?.volumes ?? []).some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claimName ||
      (ephemeral !== undefined && `${metadata.name}-${name}` === claimName),
  );
}

/** storage.k8s.io/v1 CSINode. */
export interface CsiNode extends KubeObject {
  spec?: { drivers?: { name: string; topologyKeys?: string[] | null }[] | null };
}

/** storage.k8s.io/v1 VolumeAttachment. */
export interface Attachment extends KubeObject {
  spec?: { nodeName?: string; source?: { persistentVolumeName?: string } };
}

/** snapshot.storage.k8s.io/v1 VolumeSnapshot. */
export interface Snapshot extends KubeObject {
  status?: {
    boundVolumeSnapshotContentName?: string;
    readyToUse?: boolean;
    restoreSize?: QuantityText;
    error?: { message?: string };
  };
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
export const secrets = resource('', 'v1', 'Secret', true);
export const csiDrivers = resource('storage.k8s.io', 'v1', 'CSIDriver', false);
export const csiNodes = resource('storage.k8s.io', 'v1', 'CSINode', false);
export const attachments = resource('storage.k8s.io', 'v1', 'VolumeAttachment', false);
export const snapshots = resource('snapshot.storage.k8s.io', 'v1', 'VolumeSnapshot', true);
export const attributesClasses = resource(
  'storage.k8s.io',
  'v1',
  'VolumeAttributesClass',
  false,
  'volumeattributesclasses',
);
/** Served by 1.31 to 1.36; before 1.34 it was the only version. */
export const olderAttributesClasses: Resource = { ...attributesClasses, version: 'v1beta1' };
