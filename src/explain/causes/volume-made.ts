/** The claim has a volume, to which kube-controller-manager has not bound it yet. */
import { attempts } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { durationText } from '../time-text.ts';
import { defineCause } from './cause.ts';

export const volumeMade = defineCause({ name: 'volume-made' });

const cure = 'Usually nothing: it takes a moment. If it stays like this, check that kube-controller-manager runs';

/** To be called once the volume of the claim is known to be the right one. */
export function checkBinding({ volume }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if (existing === undefined) return undefined;
  const { name, deletionTimestamp } = existing.metadata;
  if (deletionTimestamp !== undefined) {
    return {
      state: 'waiting',
      cause: 'volume-made',
      message: `PersistentVolume ${name} exists for the claim and is being deleted, so they are not bound.`,
      cure: `Usually nothing: another one is provisioned once it is gone. See why it stays: csi-provisioner why pv/${name}`,
    };
  }
  return {
    state: 'waiting',
    cause: 'volume-made',
    message: `PersistentVolume ${name} exists for the claim, and kube-controller-manager has not bound them yet.`,
    cure,
  };
}

/** According to the events: a volume that was deleted before it was bound is followed by another attempt. */
export function checkSucceeded(facts: ClaimFacts): Finding | undefined {
  const { succeeded, failed, started } = attempts(facts);
  if (succeeded === undefined || succeeded.atMs < Math.max(failed?.atMs ?? 0, started?.atMs ?? 0)) return undefined;
  return {
    state: 'waiting',
    cause: 'volume-made',
    message: `The provisioner created the volume ${durationText(facts.nowMs - succeeded.atMs)} ago, and kube-controller-manager has not bound it yet. (${succeeded.text})`,
    cure,
  };
}
