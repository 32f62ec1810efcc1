import type { KubeObject, Resource } from '../kube/kube-object.ts';

/** storage.k8s.io/v1 VolumeAttachment: the fields a deletion reads. */
export interface VolumeAttachment extends KubeObject {
  spec?: { nodeName?: string; source?: { persistentVolumeName?: string } };
}

export const volumeAttachments: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'volumeattachments',
  kind: 'VolumeAttachment',
  namespaced: false,
};

/** Name of the cache index from a volume's name to its attachments. */
export const attachmentsByVolume = 'persistentVolumeName';

/** Index values of an attachment: the volume it is for; none for inline volumes. */
export function attachedVolume(attachment: VolumeAttachment): string[] {
  const name = attachment.spec?.source?.persistentVolumeName ?? '';
  return name === '' ? [] : [name];
}
