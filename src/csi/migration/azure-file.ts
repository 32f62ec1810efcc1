import type { CsiVolumeSource, PersistentVolume } from '../../provision/objects.ts';
import { azureFileResourceGroupKey } from '../annotation-keys.ts';
import { type InTreePlugin, type InTreeSource, mountFields } from './in-tree-plugin.ts';
import { attributesInLowerCase } from './volume-attributes.ts';

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
