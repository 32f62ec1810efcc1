import { OptionalApi } from '../../csi/optional-api.ts';
import { volumeAttributesClasses } from '../../csi/volume-attributes-class.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

export interface AttributesClassesFeature extends Feature {
  /** Whether attributes classes are in use now. */
  readonly enabled: () => boolean;
}

/**
 * Attributes classes are used as the gate says where it was set, else wherever the API is served, which is checked now
 * and, while it is missing, once a minute.
 */
export async function attributesClassesFeature(options: FeatureOptions): Promise<AttributesClassesFeature> {
  const { config, client, ending, clock, logger } = options;
  const { volumeAttributesClass, volumeAttributesClassNamed } = config.featureGates;
  if (volumeAttributesClassNamed || !volumeAttributesClass) return { enabled: () => volumeAttributesClass };
  const api = new OptionalApi({ client, resource: volumeAttributesClasses, clock, logger });
  const enabled = (): boolean => api.presence !== 'absent';
  if ((await api.check(ending)) !== 'absent') return { enabled };
  logger.info(
    {},
    'Disabling VolumeAttributesClass feature gate because the VolumeAttributesClass v1 API is not available',
  );
  return { enabled, follow: (signal) => api.waitUntilPresent(signal) };
}
