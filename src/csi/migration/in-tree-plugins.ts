/** The in-tree plugins that CSI drivers replaced (Kubernetes, "Volumes", "CSI migration"); those of vSphere and Portworx are here. */
import type { CsiVolumeSource } from '../../provision/objects.ts';
import { reservedPrefix } from '../class-parameters.ts';
import { azureDisk, azureFile } from './azure.ts';
import {
  fsTypeRule,
  handleSource,
  type InTreePlugin,
  mountFields,
  type ParameterRule,
  translateParameters,
  withParameters,
  withZoneKey,
} from './in-tree-plugin.ts';
import { zoneAndRegionTopology } from './volume-zones.ts';
import { awsEbs, cinder, gcePd } from './zonal-disks.ts';

/** core/v1 VsphereVirtualDiskVolumeSource. */
interface VsphereVolume {
  volumePath: string;
  fsType?: string;
}

const vsphereKeys = { zone: 'topology.csi.vmware.com/zone', region: 'topology.csi.vmware.com/region' };

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

const vsphereRules = new Map<string, ParameterRule>([
  ['fstype', fsTypeRule],
  ['storagepolicyname', (value) => ({ storagepolicyname: value })],
  ...migrationParameters.map((key): [string, ParameterRule] => [
    key,
    (value) => ({ [`${key}-migrationparam`]: value }),
  ]),
]);

/** Virtual disks of vSphere. */
const vsphereVolume: InTreePlugin = {
  name: 'kubernetes.io/vsphere-volume',
  driverName: 'csi.vsphere.vmware.com',
  sourceField: 'vsphereVolume',
  topology: zoneAndRegionTopology(vsphereKeys),

  translateClass(storageClass) {
    // The driver refuses what it does not know.
    const known = Object.entries(storageClass.parameters ?? {}).filter(([key]) => vsphereRules.has(key.toLowerCase()));
    const parameters = { ...translateParameters(Object.fromEntries(known), vsphereRules), csimigration: 'true' };
    return { ...withZoneKey(storageClass, vsphereKeys.zone), parameters };
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

const portworxDriver = 'pxd.portworx.com';

/** The plugin used one secret for all operations. */
const secretPairs = [
  'provisioner',
  'controller-publish',
  'node-publish',
  'node-stage',
  'controller-expand',
  'node-expand',
];

const secretRule =
  (half: 'name' | 'namespace'): ParameterRule =>
  (value) =>
    Object.fromEntries(secretPairs.map((pair) => [`${reservedPrefix}${pair}-secret-${half}`, value]));

const portworxRules = new Map<string, ParameterRule>([
  ['openstorage.io/auth-secret-name', secretRule('name')],
  ['openstorage.io/auth-secret-namespace', secretRule('namespace')],
]);

const portworxVolume: InTreePlugin = {
  ...handleSource,
  name: 'kubernetes.io/portworx-volume',
  driverName: portworxDriver,
  sourceField: 'portworxVolume',

  translateClass(storageClass) {
    return { ...withParameters(storageClass, portworxRules), provisioner: portworxDriver };
  },
};

export const inTreePlugins: readonly InTreePlugin[] = [
  awsEbs,
  gcePd,
  cinder,
  azureDisk,
  azureFile,
  vsphereVolume,
  portworxVolume,
];

/** Whether a name is that of a provisioner that the driver stands for: its own, and that of the plugin that it replaced. */
export function isProvisionerOf(driverName: string): (name: string) => boolean {
  const plugin = replacedPlugin(driverName);
  return (name) => name === driverName || name === plugin?.name;
}

/** The plugin that a driver replaced; undefined for all but a few drivers. */
export function replacedPlugin(driverName: string): InTreePlugin | undefined {
  return inTreePlugins.find((plugin) => plugin.driverName === driverName);
}
