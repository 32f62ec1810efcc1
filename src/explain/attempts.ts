/** The attempts of the provisioner, as its events show them, or as it knows them itself. */
import { type ClaimFacts, provisionerOf } from './claim-facts-reader.ts';
import { found } from './cluster-reader.ts';
import type { Holding } from './explanation.ts';
import { type History, provisioningHistory, type Recorded } from './provisioning-events.ts';

/** The result of a check that has found a failed attempt, whose text shows the cause. */
export interface FailedAttempt {
  failed: Recorded;
  /** What happens then, unless another attempt is running already. Default: the usual next attempt. */
  next?: string;
}

/** By how much the clocks of the provisioner's node and of the API server may differ, in milliseconds. */
const maxSkewMs = 60_000;

/** The attempts to create the claim's volume, as far as they are known. */
export function attempts({ claim, storageClass, events, history }: ClaimFacts): History {
  return history ?? provisioningHistory(found(events) ?? [], provisionerOf(claim, found(storageClass)));
}

/** A volume that was begun keeps the parameters of its former class: see "A class that was recreated meanwhile" in docs/troubleshooting.md. */
export function withClassAge(facts: ClaimFacts, { started, failed }: History, holding: Holding): Holding {
  const { name, creationTimestamp } = found(facts.storageClass)?.metadata ?? { name: '' };
  const firstMs = Math.min(started?.sinceMs ?? Infinity, failed?.sinceMs ?? Infinity);
  const isRecreated = firstMs > 0 && Date.parse(creationTimestamp ?? '') > firstMs + maxSkewMs;
  if (!isRecreated) return holding;
  return {
    ...holding,
    cure: `${holding.cure ?? ''}. StorageClass ${name} was recreated after the first attempt: if the volume is still requested with the earlier parameters, recreate the claim`,
  };
}
