/** Disks that are in a zone, with the segment of their driver: AWS EBS, the Persistent Disks of Google Cloud, OpenStack Cinder. */
import type { CsiVolumeSource, PersistentVolume } from '../../provision/objects.ts';
import {
  fsTypeRule,
  handleSource,
  type InTreePlugin,
  mountFields,
  type ParameterRule,
  partitionKey,
  partitionOf,
  withParameters,
  withZoneKey,
  withZones,
} from './in-tree-plugin.ts';
import { betaZoneLabel, regionOfZones, zoneLabel, zoneSeparator, zoneTopology } from './volume-zones.ts';

/** core/v1 AWSElasticBlockStoreVolumeSource. */
interface AwsElasticBlockStore {
  volumeID: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
}

const ebsZoneKey = 'topology.ebs.csi.aws.com/zone';

const ebsRules = new Map<string, ParameterRule>([
  ['fstype', fsTypeRule],
  // The plugin raised the rate to what small volumes need; the driver does so only with this parameter.
  ['iopspergb', (value, key) => ({ [key]: value, allowautoiopspergbincrease: 'true' })],
]);

/** Disks of AWS Elastic Block Store. */
export const awsEbs: InTreePlugin = {
  name: 'kubernetes.io/aws-ebs',
  driverName: 'ebs.csi.aws.com',
  sourceField: 'awsElasticBlockStore',
  topology: zoneTopology(ebsZoneKey, regionOfEbsZone),

  translateClass(storageClass) {
    return withParameters(withZones(storageClass, ebsZoneKey), ebsRules);
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
function regionOfEbsZone(zone: string): string {
  const parts = zone.split('-');
  const last = parts.at(-1) ?? '';
  if ((parts.length === 3 || parts.length === 4) && last.length === 2) return zone.slice(0, -1);
  if (parts.length === 5 || parts.length === 7) return parts.slice(0, 3).join('-');
  throw new Error(`the region of zone "${zone}" is not known`);
}

/** core/v1 GCEPersistentDiskVolumeSource. */
interface GcePersistentDisk {
  pdName: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
}

const pdZoneKey = 'topology.gke.io/zone';

/** A part of a handle that the driver looks up by itself. */
const unspecified = 'UNSPECIFIED';

const pdRules = new Map<string, ParameterRule>([['fstype', fsTypeRule]]);

/** Persistent disks of Google Compute Engine, in one zone or, as regional disks, in several of a region. */
export const gcePd: InTreePlugin = {
  name: 'kubernetes.io/gce-pd',
  driverName: 'pd.csi.storage.gke.io',
  sourceField: 'gcePersistentDisk',
  topology: zoneTopology(pdZoneKey, regionOfPdZone),

  translateClass(storageClass) {
    return withParameters(withZones(storageClass, pdZoneKey), pdRules);
  },

  inTreeSource({ volumeHandle, volumeAttributes = {}, ...mount }: CsiVolumeSource) {
    // projects/PROJECT/zones/ZONE/disks/NAME, or regions/REGION
    const pdName = volumeHandle.split('/')[5];
    if (pdName === undefined) throw new Error(`volume handle "${volumeHandle}" does not name a disk`);
    const partition = partitionOf(volumeAttributes[partitionKey] || '0');
    const source: GcePersistentDisk = {
      pdName,
      ...mountFields(mount),
      ...(partition !== undefined && { partition }),
    };
    return { source };
  },

  // in whichever project and zone: the source does not say
  storageKey: {
    ofSource: ({ pdName }: GcePersistentDisk) => pdName,
    ofHandle: (handle) => handle.split('/')[5] ?? handle,
  },

  csiSource({ pdName, partition = 0, ...mount }: GcePersistentDisk, volume) {
    return {
      volumeHandle: `projects/${unspecified}/${segmentOf(volume)}/disks/${pdName}`,
      ...mountFields(mount),
      volumeAttributes: { [partitionKey]: partition === 0 ? '' : String(partition) },
    };
  },
};

/** The older label counts before the current one, whatever the node affinity names. */
function segmentOf({ metadata: { labels = {} } }: PersistentVolume): string {
  const zones = (labels[betaZoneLabel] || (labels[zoneLabel] ?? '')).split(zoneSeparator);
  if (zones.length > 1) return `regions/${regionOfZones(zones, regionOfPdZone)}`;
  return `zones/${zones[0] || unspecified}`;
}

function regionOfPdZone(zone: string): string {
  const parts = zone.split('-');
  if (parts.length !== 3) throw new Error(`the region of zone "${zone}" is not known`);
  return parts.slice(0, 2).join('-');
}

const cinderZoneKey = 'topology.cinder.csi.openstack.org/zone';

const cinderRules = new Map<string, ParameterRule>([['fstype', fsTypeRule]]);

/** Volumes of OpenStack Cinder. */
export const cinder: InTreePlugin = {
  ...handleSource,
  name: 'kubernetes.io/cinder',
  driverName: 'cinder.csi.openstack.org',
  sourceField: 'cinder',
  topology: zoneTopology(cinderZoneKey),

  translateClass(storageClass) {
    return withParameters(withZoneKey(storageClass, cinderZoneKey), cinderRules);
  },
};
