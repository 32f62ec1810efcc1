import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { Informer } from '../kube/cache/informer.ts';
import { type KubeObject, markReduced, type Resource } from '../kube/kube-object.ts';
import { messageDecoder } from '../kube/protobuf/message-decoder.ts';
import type { ReflectorMetrics } from '../kube/cache/reflector-metrics.ts';
import { SharedValues } from '../kube/cache/store.ts';
import type { Transport } from '../kube/client/transport.ts';

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

/**
 * Makes the cache of attachments; nothing is read before it is run. Every volume in use has an attachment, so only what a deletion
 * reads is kept, and not the status, whose metadata may be of any size.
 */
export function attachmentInformer(options: {
  transport: Transport;
  metrics: (resource: string) => ReflectorMetrics;
  clock: Clock;
  logger: Logger;
}): Informer<VolumeAttachment> {
  const { metrics, ...common } = options;
  const shared = new SharedValues();
  return new Informer<VolumeAttachment>({
    ...common,
    resource: volumeAttachments,
    transform: (object) => {
      const { metadata, spec } = object as VolumeAttachment;
      const { name, uid, resourceVersion } = metadata;
      const persistentVolumeName = spec?.source?.persistentVolumeName;
      return markReduced({
        metadata: { name, uid, resourceVersion } as KubeObject['metadata'],
        spec: {
          nodeName: shared.string(spec?.nodeName ?? ''),
          source: persistentVolumeName === undefined ? {} : { persistentVolumeName },
        },
      });
    },
    protobuf: messageDecoder('VolumeAttachment', {
      metadata: { name: true, uid: true, resourceVersion: true },
      spec: { nodeName: true, source: { persistentVolumeName: true } },
    }),
    sameContent: (old, attachment) =>
      old.spec?.nodeName === attachment.spec?.nodeName &&
      old.spec?.source?.persistentVolumeName === attachment.spec?.source?.persistentVolumeName,
    indexers: { [attachmentsByVolume]: attachedVolume },
    metrics: metrics(volumeAttachments.plural),
  });
}
