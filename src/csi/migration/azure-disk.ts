import type { CsiVolumeSource, StorageClass } from '../../provision/objects.ts';
import { mapExpressions, withZones } from './class-translation.ts';
import { type InTreePlugin, mountFields } from './in-tree-plugin.ts';
import { attributesInLowerCase } from './volume-attributes.ts';

/** core/v1 AzureDiskVolumeSource. */
interface AzureDisk {
  diskName: string;
  diskURI: string;
  cachingMode?: string;
  fsType?: string;
  readOnly?: boolean;
  kind?: string;
}

const zoneKey = 'topology.disk.csi.azure.com/zone';

/** Disks of Azure: managed ones, or blobs in a storage account. */
export const azureDisk: InTreePlugin = {
  name: 'kubernetes.io/azure-disk',
  driverName: 'disk.csi.azure.com',
  sourceField: 'azureDisk',

  translateClass(storageClass) {
    return withoutNumberedZones(withZones(storageClass, zoneKey));
  },

  inTreeSource({ volumeHandle, volumeAttributes, fsType, readOnly }: CsiVolumeSource) {
    const given = Object.entries(volumeAttributes ?? {}).filter(([, value]) => value !== ''); // an empty one is none
    const attributes = attributesInLowerCase(Object.fromEntries(given));
    const cachingMode = attributes.get('cachingmode') ?? '';
    const source: AzureDisk = {
      diskName: diskNameOf(volumeHandle),
      diskURI: volumeHandle,
      kind: 'Managed',
      // Both always: where a field is absent, the API server sets `ext4` (core/v1, AzureDiskVolumeSource).
      fsType: attributes.get('fstype') || (fsType ?? ''),
      readOnly: readOnly === true,
      ...(cachingMode !== '' && { cachingMode }),
    };
    return { source };
  },

  storageKey: {
    ofSource: ({ diskURI }: AzureDisk) => diskURI.toLowerCase(),
    ofHandle: (handle) => handle.toLowerCase(),
  },

  csiSource({ diskURI, cachingMode, kind = 'Managed', ...mount }: AzureDisk) {
    // The driver knows no blobs of storage accounts: it returns OK for DeleteVolume and leaves them where they are.
    if (kind.toLowerCase() !== 'managed') throw new Error(`kind(${kind}) is not supported in csi migration`);
    return {
      volumeHandle: diskURI,
      ...mountFields(mount),
      volumeAttributes: { kind, ...(cachingMode !== undefined && { cachingMode }) },
    };
  },
};

/** Disks outside of availability zones have fault domains, plain numbers, where the driver expects nothing. */
function withoutNumberedZones({ allowedTopologies, ...storageClass }: StorageClass): StorageClass {
  if (allowedTopologies === undefined) return storageClass;
  return {
    ...storageClass,
    allowedTopologies: allowedTopologies.map((term) =>
      mapExpressions(term, ({ key, values }) => ({
        key,
        values: key === zoneKey ? values.map((value) => (/^\d+$/.test(value) ? '' : value)) : values,
      })),
    ),
  };
}

function diskNameOf(handle: string): string {
  const path = handle.startsWith('http')
    ? /^http.*:\/\/.*\/vhds\/(.+)$/
    : /\/subscriptions\/.*\/resourceGroups\/.*\/providers\/Microsoft\.Compute\/disks\/(.+)$/;
  const [, name] = path.exec(handle) ?? [];
  if (name === undefined) throw new Error(`volume handle "${handle}" does not name a disk`);
  return name;
}
