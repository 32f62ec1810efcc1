import type { KubeObject, ObjectReference, Resource } from '../../kube/kube-object.ts';
import type { QuantityText } from '../../provision/objects.ts';
import { snapshotGroup } from './data-source.ts';

/** snapshot.storage.k8s.io/v1 VolumeSnapshot: the fields a restore reads. */
export interface VolumeSnapshot extends KubeObject {
  status?: { boundVolumeSnapshotContentName?: string; readyToUse?: boolean; restoreSize?: QuantityText };
}

/** snapshot.storage.k8s.io/v1 VolumeSnapshotContent: the fields a restore reads. */
export interface VolumeSnapshotContent extends KubeObject {
  spec?: { driver?: string; volumeSnapshotRef?: ObjectReference; sourceVolumeMode?: string };
  status?: { snapshotHandle?: string };
}

export const volumeSnapshots: Resource = {
  group: snapshotGroup,
  version: 'v1',
  plural: 'volumesnapshots',
  kind: 'VolumeSnapshot',
  namespaced: true,
  verbs: ['get', 'list', 'watch', 'update'],
};

export const volumeSnapshotContents: Resource = {
  group: snapshotGroup,
  version: 'v1',
  plural: 'volumesnapshotcontents',
  kind: 'VolumeSnapshotContent',
  namespaced: false,
};
