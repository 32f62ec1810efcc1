import type { SandboxClient } from '../api/client.ts';
import { annotation } from './annotations.ts';
import type { BinderContext } from './binder-context.ts';
import { hasAnnotation, setAnnotation, updateObject } from './object-access.ts';
import { resources, type Claim, type Volume } from './objects.ts';
import { setBoundPhase, setVolumePhase } from './phases.ts';
import { refersTo } from './volume-fit.ts';

/**
 * Links claim and volume in four writes, each left out when it is already right, so that a repeat after a failure goes
 * on where it stopped. The claim is written last: whoever sees it bound sees a bound volume.
 * @throws {StatusError} from the first write that fails; the later ones are not tried.
 */
export function bindVolume(context: BinderContext, claim: Claim, volume: Volume): void {
  const reserved = reserveVolume(context.client, claim, volume);
  const bound = setVolumePhase(context, reserved, 'Bound');
  const linked = linkClaim(context.client, claim, bound);
  setBoundPhase(context, linked, bound);
}

/**
 * Writes the claim into the volume's claimRef. A volume that did not refer to the claim before is marked as bound by
 * the controller, so that unbinding may drop the whole reference again.
 * @throws {StatusError} if the write fails.
 */
export function reserveVolume(client: SandboxClient, claim: Claim, volume: Volume): Volume {
  const wasMeant = refersTo(volume, claim);
  if (wasMeant && volume.spec.claimRef?.uid === claim.metadata.uid) return volume;
  return updateObject(client, resources.volumes, volume, (copy) => {
    const { namespace, name, uid, resourceVersion } = claim.metadata;
    copy.spec.claimRef = {
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    if (!wasMeant) setAnnotation(copy, annotation.boundByController, 'yes');
  });
}

function linkClaim(client: SandboxClient, claim: Claim, volume: Volume): Claim {
  const linked = claim.spec.volumeName === volume.metadata.name;
  if (linked && hasAnnotation(claim, annotation.bindCompleted)) return claim;
  return updateObject(client, resources.claims, claim, (copy) => {
    if (!linked) {
      copy.spec.volumeName = volume.metadata.name;
      setAnnotation(copy, annotation.boundByController, 'yes');
    }
    setAnnotation(copy, annotation.bindCompleted, 'yes');
  });
}
