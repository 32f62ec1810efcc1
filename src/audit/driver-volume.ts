import type { ControllerGetVolumeResponse__Output } from '../csi/generated/csi/v1/ControllerGetVolumeResponse.ts';
import { mayMentionUid } from './owner-index.ts';

/** What the driver says about a volume, in a list or by itself. */
export interface DriverVolume {
  /** To how many nodes it is attached. */
  readonly publishedNodes: number;
  /** Undefined: the driver does not say. */
  readonly capacityBytes: number | undefined;
  /** Texts of the context that may say whose it is. */
  readonly texts: readonly string[];
}

const maxTextLength = 256;
const maxTexts = 4;

/** Reads a response of ControllerGetVolume, or an entry of ListVolumes, which has the same fields. */
export function driverVolume({ volume, status }: ControllerGetVolumeResponse__Output): DriverVolume {
  const capacityBytes = Number(volume?.capacity_bytes ?? 0);
  return {
    publishedNodes: status?.published_node_ids?.length ?? 0,
    capacityBytes: capacityBytes > 0 ? capacityBytes : undefined,
    texts: tellingTexts(volume?.volume_context),
  };
}

/** Drivers keep in the context what `--extra-create-metadata` passes them. */
function tellingTexts(context: Readonly<Record<string, string>> = {}): string[] {
  const telling = Object.entries(context).filter(
    ([key, value]) => value.length <= maxTextLength && (/name$/i.test(key) || mayMentionUid(value)),
  );
  return telling.slice(0, maxTexts).map(([, value]) => value);
}
