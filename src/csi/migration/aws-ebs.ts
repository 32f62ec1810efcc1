import type { CsiVolumeSource } from '../../provision/objects.ts';
import {
  fsTypeRule,
  type InTreePlugin,
  mountFields,
  type ParameterRule,
  partitionKey,
  partitionOf,
  withParameters,
  withZones,
} from './in-tree-plugin.ts';
import { zoneTopology } from './volume-zones.ts';

/** core/v1 AWSElasticBlockStoreVolumeSource. */
interface AwsElasticBlockStore {
  volumeID: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
}

const zoneKey = 'topology.ebs.csi.aws.com/zone';

const rules = new Map<string, ParameterRule>([
  ['fstype', fsTypeRule],
  // The plugin raised the rate to what small volumes need; the driver does so only with this parameter.
  ['iopspergb', (value, key) => ({ [key]: value, allowautoiopspergbincrease: 'true' })],
]);

/** Disks of AWS Elastic Block Store. */
export const awsEbs: InTreePlugin = {
  name: 'kubernetes.io/aws-ebs',
  driverName: 'ebs.csi.aws.com',
  sourceField: 'awsElasticBlockStore',
  topology: zoneTopology(zoneKey, regionOfZone),

  translateClass(storageClass) {
    return withParameters(withZones(storageClass, zoneKey), rules);
  },

  inTreeSource({ volumeHandle, volumeAttributes = {}, ...mount }: CsiVolumeSource) {
    const text = volumeAttributes[partitionKey];
    const partition = text === undefined ? undefined : partitionOf(text);
    const source: AwsElasticBlockStore = {
      volumeID: volumeHandle,
      ...mountFields(mount),
      ...(partition !== undefined && { partition }),
    };
    return { source };
  },

  csiSource({ volumeID, partition = 0, ...mount }: AwsElasticBlockStore) {
    return {
      volumeHandle: plainVolumeId(volumeID),
      ...mountFields(mount),
      volumeAttributes: { [partitionKey]: String(partition) },
    };
  },
};

/** Kubernetes also knew the form `aws://ZONE/vol-ID`, with or without the zone. */
function plainVolumeId(volumeId: string): string {
  if (!volumeId.startsWith('aws://')) return volumeId;
  const [, plain] = /^aws:\/\/[^/]*\/+(vol-[^/]*)\/*$/.exec(volumeId) ?? [];
  if (plain === undefined) throw new Error(`"${volumeId}" is not the name of an EBS volume`);
  return plain;
}

/** `us-west-2a` and `us-gov-west-1b` are in a region; local and wavelength zones begin with the name of theirs. */
function regionOfZone(zone: string): string {
  const parts = zone.split('-');
  const last = parts.at(-1) ?? '';
  if ((parts.length === 3 || parts.length === 4) && last.length === 2) return zone.slice(0, -1);
  if (parts.length === 5 || parts.length === 7) return parts.slice(0, 3).join('-');
  throw new Error(`the region of zone "${zone}" is not known`);
}
