import type { CsiVolumeSource, PersistentVolume } from '../../provision/objects.ts';
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
import { betaZoneLabel, regionOfZones, zoneLabel, zoneSeparator, zoneTopology } from './volume-zones.ts';

/** core/v1 GCEPersistentDiskVolumeSource. */
interface GcePersistentDisk {
  pdName: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
}

const zoneKey = 'topology.gke.io/zone';

/** A part of a handle that the driver looks up by itself. */
const unspecified = 'UNSPECIFIED';

const rules = new Map<string, ParameterRule>([['fstype', fsTypeRule]]);

/** Persistent disks of Google Compute Engine, in one zone or, as regional disks, in several of a region. */
export const gcePd: InTreePlugin = {
  name: 'kubernetes.io/gce-pd',
  driverName: 'pd.csi.storage.gke.io',
  sourceField: 'gcePersistentDisk',
  topology: zoneTopology(zoneKey, regionOfZone),

  translateClass(storageClass) {
    return withParameters(withZones(storageClass, zoneKey), rules);
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
  if (zones.length > 1) return `regions/${regionOfZones(zones, regionOfZone)}`;
  return `zones/${zones[0] || unspecified}`;
}

function regionOfZone(zone: string): string {
  const parts = zone.split('-');
  if (parts.length !== 3) throw new Error(`the region of zone "${zone}" is not known`);
  return parts.slice(0, 2).join('-');
}
