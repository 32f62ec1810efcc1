import type { CsiVolumeSource } from '../../provision/objects.ts';
import {
  fsTypeRule,
  type InTreePlugin,
  mountFields,
  type ParameterRule,
  translateParameters,
  withZoneKey,
} from './in-tree-plugin.ts';
import { zoneAndRegionTopology } from './volume-zones.ts';

/** core/v1 VsphereVirtualDiskVolumeSource. */
interface VsphereVolume {
  volumePath: string;
  fsType?: string;
}

const keys = { zone: 'topology.csi.vmware.com/zone', region: 'topology.csi.vmware.com/region' };

/** Volume attribute in which the driver names the file that the plugin would have made. */
const pathAttribute = 'initialvolumefilepath';

/** What only the plugin knew, and the driver honours under a name of its own. */
const migrationParameters = [
  'datastore',
  'diskformat',
  'hostfailurestotolerate',
  'forceprovisioning',
  'cachereservation',
  'diskstripes',
  'objectspacereservation',
  'iopslimit',
];

const rules = new Map<string, ParameterRule>([
  ['fstype', fsTypeRule],
  ['storagepolicyname', (value) => ({ storagepolicyname: value })],
  ...migrationParameters.map((key): [string, ParameterRule] => [
    key,
    (value) => ({ [`${key}-migrationparam`]: value }),
  ]),
]);

/** Virtual disks of vSphere. */
export const vsphereVolume: InTreePlugin = {
  name: 'kubernetes.io/vsphere-volume',
  driverName: 'csi.vsphere.vmware.com',
  sourceField: 'vsphereVolume',
  topology: zoneAndRegionTopology(keys),

  translateClass(storageClass) {
    // The driver refuses what it does not know.
    const known = Object.entries(storageClass.parameters ?? {}).filter(([key]) => rules.has(key.toLowerCase()));
    const parameters = { ...translateParameters(Object.fromEntries(known), rules), csimigration: 'true' };
    return { ...withZoneKey(storageClass, keys.zone), parameters };
  },

  inTreeSource({ volumeAttributes = {}, fsType }: CsiVolumeSource) {
    const volumePath = volumeAttributes[pathAttribute] ?? '';
    if (volumePath === '') throw new Error(`the driver did not say the volume's path in attribute "${pathAttribute}"`);
    const source: VsphereVolume = { volumePath, ...mountFields({ fsType }) };
    return { source };
  },

  csiSource({ volumePath, ...mount }: VsphereVolume) {
    return {
      volumeHandle: volumePath,
      ...mountFields(mount),
      volumeAttributes: { [pathAttribute]: volumePath },
    };
  },
};
