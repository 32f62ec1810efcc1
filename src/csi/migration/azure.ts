import type { CsiVolumeSource, PersistentVolume, StorageClass } from '../../provision/objects.ts';
import {
  attributesInLowerCase,
  type InTreePlugin,
  type InTreeSource,
  mapExpressions,
  mountFields,
  withZones,
} from './in-tree-plugin.ts';

/** On a volume of the in-tree plugin for Azure Files: its resource group. */
const azureFileResourceGroupKey = 'kubernetes.io/azure-file-resource-group';

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

/** core/v1 AzureFilePersistentVolumeSource. */
interface AzureFile {
  shareName: string;
  secretName: string;
  secretNamespace?: string | null;
  readOnly?: boolean;
}

/** Shares of Azure Files. */
export const azureFile: InTreePlugin = {
  name: 'kubernetes.io/azure-file',
  driverName: 'file.csi.azure.com',
  sourceField: 'azureFile',

  translateClass(storageClass) {
    return { ...storageClass };
  },

  inTreeSource({ volumeHandle, volumeAttributes, nodeStageSecretRef, readOnly }: CsiVolumeSource): InTreeSource {
    const attributes = attributesInLowerCase(volumeAttributes);
    const stageSecret = nodeStageSecretRef?.name ? nodeStageSecretRef : undefined;
    const shareName = attributes.get('sharename') ?? '';
    const secretName = stageSecret?.name ?? attributes.get('secretname') ?? '';
    const secretNamespace = stageSecret?.namespace ?? attributes.get('secretnamespace') ?? 'default';
    const rest = { secretNamespace, ...mountFields({ readOnly }) };
    if (shareName !== '' && secretName !== '')
      return { source: { shareName, secretName, ...rest } satisfies AzureFile };
    const handle = partsOf(volumeHandle);
    const source: AzureFile = {
      shareName: shareName || handle.share,
      secretName: secretName || `azure-storage-account-${handle.account}-secret`,
      ...rest,
    };
    return { source, ...(handle.group !== '' && { annotations: { [azureFileResourceGroupKey]: handle.group } }) };
  },

  // the account is not always in the source
  storageKey: {
    ofSource: ({ shareName }: AzureFile) => shareName.toLowerCase(),
    ofHandle: (handle) => (handle.split('#')[2] ?? handle).toLowerCase(),
  },

  csiSource({ shareName, secretName, secretNamespace, readOnly }: AzureFile, { metadata, spec }: PersistentVolume) {
    const namespace = secretNamespace || spec.claimRef?.namespace;
    if (!namespace) throw new Error('neither the volume nor its claim names the namespace of the secret');
    const group = metadata.annotations?.[azureFileResourceGroupKey] ?? '';
    return {
      volumeHandle: [group, accountOf(secretName), shareName, metadata.name, namespace].join('#'),
      ...mountFields({ readOnly }),
      volumeAttributes: { shareName },
      nodeStageSecretRef: { name: secretName, namespace },
    };
  },
};

/** Handles begin with resource group, storage account and share. */
function partsOf(handle: string): { group: string; account: string; share: string } {
  const [group, account, share] = handle.split('#');
  if (group === undefined || account === undefined || share === undefined) {
    throw new Error(`volume handle "${handle}" does not name a resource group, a storage account and a share`);
  }
  return { group, account, share };
}

/** Secrets that the plugin made are named after the account; of others the name is all that is known. */
function accountOf(secretName: string): string {
  return /azure-storage-account-(.+)-secret/.exec(secretName)?.[1] ?? secretName;
}
