import type { CsiVolumeSource } from '../../provision/objects.ts';
import {
  fsTypeRule,
  type InTreePlugin,
  mountFields,
  type ParameterRule,
  withParameters,
  withZoneKey,
} from './in-tree-plugin.ts';
import { zoneTopology } from './volume-zones.ts';

/** core/v1 CinderPersistentVolumeSource. */
interface Cinder {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
}

const zoneKey = 'topology.cinder.csi.openstack.org/zone';

const rules = new Map<string, ParameterRule>([['fstype', fsTypeRule]]);

/** Volumes of OpenStack Cinder. */
export const cinder: InTreePlugin = {
  name: 'kubernetes.io/cinder',
  driverName: 'cinder.csi.openstack.org',
  sourceField: 'cinder',
  topology: zoneTopology(zoneKey),

  translateClass(storageClass) {
    return withParameters(withZoneKey(storageClass, zoneKey), rules);
  },

  inTreeSource({ volumeHandle, ...mount }: CsiVolumeSource) {
    const source: Cinder = { volumeID: volumeHandle, ...mountFields(mount) };
    return { source };
  },

  csiSource({ volumeID, ...mount }: Cinder) {
    return { volumeHandle: volumeID, ...mountFields(mount), volumeAttributes: {} };
  },
};
