import type { CsiVolumeSource } from '../../provision/objects.ts';
import { reservedPrefix } from '../class-parameters.ts';
import { type InTreePlugin, mountFields, type ParameterRule, withParameters } from './in-tree-plugin.ts';

/** core/v1 PortworxVolumeSource. */
interface PortworxVolume {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
}

const driverName = 'pxd.portworx.com';

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

const rules = new Map<string, ParameterRule>([
  ['openstorage.io/auth-secret-name', secretRule('name')],
  ['openstorage.io/auth-secret-namespace', secretRule('namespace')],
]);

/** Volumes of Portworx. */
export const portworxVolume: InTreePlugin = {
  name: 'kubernetes.io/portworx-volume',
  driverName,
  sourceField: 'portworxVolume',

  translateClass(storageClass) {
    return { ...withParameters(storageClass, rules), provisioner: driverName };
  },

  inTreeSource({ volumeHandle, ...mount }: CsiVolumeSource) {
    const source: PortworxVolume = { volumeID: volumeHandle, ...mountFields(mount) };
    return { source };
  },

  csiSource({ volumeID, ...mount }: PortworxVolume) {
    return { volumeHandle: volumeID, ...mountFields(mount), volumeAttributes: {} };
  },
};
