import { OptionalApi } from '../../csi/optional-api.ts';
import { olderAttributesClassVersions, volumeAttributesClasses } from '../../csi/volume-attributes-class.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

export interface AttributesClassesFeature {
  /** Whether attributes classes are in use now. */
  readonly enabled: () => boolean;
  /** Absent where the gate was switched off. */
  readonly api?: OptionalApi;
}

/**
 * Attributes classes are used as the gate says where it was set, else wherever the API is served, which is checked now
 * and, while it is missing, for each claim that names one.
 */
export async function attributesClassesFeature(options: FeatureOptions): Promise<AttributesClassesFeature> {
  const { config, client, ending, clock, logger } = options;
  const { volumeAttributesClass, volumeAttributesClassNamed } = config.featureGates;
  if (!volumeAttributesClass) return { enabled: () => false };
  const api = new OptionalApi({
    client,
    resource: volumeAttributesClasses,
    olderVersions: olderAttributesClassVersions,
    clock,
    logger,
  });
  if (volumeAttributesClassNamed) return { enabled: () => true, api };
  if ((await api.check(ending)) === 'absent') {
    logger.info(
      {},
      'Disabling VolumeAttributesClass feature gate because the VolumeAttributesClass v1 API is not available',
    );
  }
  return { enabled: () => api.presence !== 'absent', api };
}
