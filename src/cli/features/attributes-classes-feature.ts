import { type AttributesClassApi, FoundAttributesClassApi } from '../../csi/attributes-class-api.ts';
import { OptionalApi } from '../../csi/optional-api.ts';
import { olderAttributesClassVersions, volumeAttributesClasses } from '../../csi/volume-attributes-class.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

export interface AttributesClassesFeature extends Feature {
  /** Absent where the gate was switched off. */
  readonly api?: AttributesClassApi;
}

/**
 * Attributes classes are used as the gate says where it was set, else wherever the API is served, which is checked before
 * the first claim and, while it is missing, for each claim that names one.
 */
export function attributesClassesFeature(options: FeatureOptions): AttributesClassesFeature {
  const { config, client, clock, logger } = options;
  const { volumeAttributesClass, volumeAttributesClassNamed } = config.featureGates;
  if (!volumeAttributesClass) return {};
  const found = new OptionalApi({
    client,
    resource: volumeAttributesClasses,
    olderVersions: olderAttributesClassVersions,
    asksTwice: true,
    clock,
    logger,
  });
  const api = new FoundAttributesClassApi({ api: found, required: volumeAttributesClassNamed, clock });
  if (volumeAttributesClassNamed) return { api };
  return {
    api,
    async prepare(signal) {
      if ((await api.check(signal)) !== 'absent') return;
      logger.info(
        {},
        'Disabling VolumeAttributesClass feature gate because the VolumeAttributesClass v1 API is not available',
      );
    },
  };
}
