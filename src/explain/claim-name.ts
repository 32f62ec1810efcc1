import type { PersistentVolume } from '../provision/objects.ts';

/** The claim that a volume is for, as `NAMESPACE/NAME`. */
export function claimName({ spec }: PersistentVolume): string {
  return `${spec.claimRef?.namespace ?? ''}/${spec.claimRef?.name ?? ''}`;
}
