/** kube-controller-manager has not handed the claim to its provisioner (annotation `volume.kubernetes.io/storage-provisioner`). */
import { shortValue } from '../../base/short-value.ts';
import { requestedProvisioner } from '../../provision/claim/claim-fields.ts';
import { attempts, type FailedAttempt } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { isInTree } from '../provisioner-facts.ts';
import { durationText, lastChangeMs } from '../time-text.ts';
import { defineCause } from './cause.ts';

const cureOfOther = 'Usually kube-controller-manager corrects the annotation. Otherwise recreate the claim';

export const notHandedOver = defineCause({
  name: 'not-handed-over',
  failures: [{ pattern: /^StorageClass ".*" names provisioner ".*", and the claim asks for /, cure: cureOfOther }],
});

/** How long kube-controller-manager may take before it is suspect, in milliseconds. */
const handOverMs = 60_000;

export function checkHandOver(facts: ClaimFacts): Finding | FailedAttempt | undefined {
  const { claim, storageClass, events, nowMs } = facts;
  const ofClass = found(storageClass);
  const asked = requestedProvisioner(claim);
  const serving = ofClass?.provisioner ?? '';
  if (asked === undefined && isInTree(serving)) {
    // kube-controller-manager records a failure if it has no such plugin
    if (events?.kind === 'unreadable') return { state: 'unknown', detail: events.why };
    const { failed } = attempts(facts);
    if (failed !== undefined) return { failed };
  }
  if (asked === undefined) {
    const ageMs = nowMs - lastChangeMs(claim);
    const late = ageMs > handOverMs;
    return {
      state: late ? 'stuck' : 'waiting',
      cause: 'not-handed-over',
      message: `kube-controller-manager has not handed the claim to its provisioner (annotation volume.kubernetes.io/storage-provisioner), and the claim has been like this for ${durationText(ageMs)}.`,
      cure: late ? 'Check that kube-controller-manager runs and that its log is free of errors' : 'Nothing yet',
    };
  }
  if (serving !== '' && serving !== asked && !isInTree(serving)) {
    return {
      state: 'stuck',
      cause: 'not-handed-over',
      message: `The claim was handed to ${shortValue(asked)}, and its class now names ${serving}. Nothing is provisioned until both agree.`,
      cure: cureOfOther,
    };
  }
  return { state: 'ok', detail: `kube-controller-manager handed it to ${shortValue(asked)}` };
}
