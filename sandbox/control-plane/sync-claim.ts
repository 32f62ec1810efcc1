import type { SandboxName } from '../api/client.ts';
import { annotation } from './annotations.ts';
import { bindVolume } from './bind-volume.ts';
import type { BinderContext } from './binder-context.ts';
import { claimClass, findDefaultClass, isDelayed, saysNoClass } from './claim-class.ts';
import { findVolume } from './find-volume.ts';
import { migratedPlugins } from './migrated-plugins.ts';
import { getObject, hasAnnotation, keyOf, setAnnotation, updateObject } from './object-access.ts';
import { type Claim, resources } from './objects.ts';
import { setUnboundPhase } from './phases.ts';
import { isFinished } from './pod-index.ts';
import { refersTo, whyUnfit } from './volume-fit.ts';

/**
 * Brings one claim one step further. Safe to repeat: in a settled state it writes nothing but
 * events.
 * @throws {StatusError} if a write fails; the claim should be synced again.
 */
export function syncClaim(context: BinderContext, name: SandboxName): void {
  const claim = getObject(context.client, resources.claims, name);
  if (claim === undefined) {
    // Its volumes are released at once rather than at the next resync.
    for (const volume of context.volumes.namesForClaim(keyOf({ metadata: name }))) context.enqueueVolume(volume);
    return;
  }
  if (hasAnnotation(claim, annotation.bindCompleted)) syncBoundClaim(context, claim);
  else if (claim.spec.volumeName) syncClaimOfNamedVolume(context, claim, claim.spec.volumeName);
  else syncUnboundClaim(context, claim);
}

function syncUnboundClaim(context: BinderContext, claim: Claim): void {
  const { client, events, volumes } = context;
  const className = claimClass(claim);
  const delayed = isDelayed(client, className);
  const volume = findVolume(claim, { client, index: volumes, onlyReserved: delayed });
  if (volume !== undefined) {
    bindVolume(context, claim, volume);
    return;
  }
  if (saysNoClass(claim) && assignDefaultClass(context, claim)) return;
  if (delayed && !hasAnnotation(claim, annotation.selectedNode)) {
    reportWaitForPod(context, claim);
  } else if (className !== '') {
    requestProvisioning(context, claim);
    return;
  } else {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    events.normal(claim, 'FailedBinding', message);
  }
  setUnboundPhase(context, claim, 'Pending');
}

/** The next sync goes on with the class (Kubernetes, "Retroactive default StorageClass assignment"). */
function assignDefaultClass({ client, enqueueClaim }: BinderContext, claim: Claim): boolean {
  const defaultClass = findDefaultClass(client);
  if (defaultClass === undefined) return false;
  updateObject(client, resources.claims, claim, (copy) => {
    copy.spec.storageClassName = defaultClass.metadata.name;
  });
  enqueueClaim(claim.metadata);
  return true;
}

function reportWaitForPod({ events, pods }: BinderContext, claim: Claim): void {
  const waiting = pods.usersOf(keyOf(claim)).filter((pod) => !pod.spec.nodeName && !isFinished(pod));
  if (waiting.length === 0) {
    events.normal(claim, 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding');
    return;
  }
  const names = waiting.map((pod) => pod.metadata.name).join(',');
  events.normal(
    claim,
    'WaitForPodScheduled',
    `waiting for pod${waiting.length > 1 ? 's' : ''} ${names} to be scheduled`,
  );
}

function syncClaimOfNamedVolume(context: BinderContext, claim: Claim, volumeName: string): void {
  const { client, events } = context;
  const volume = getObject(client, resources.volumes, { name: volumeName });
  if (volume === undefined) {
    setUnboundPhase(context, claim, 'Pending');
  } else if (volume.spec.claimRef === undefined) {
    const why = whyUnfit(volume, claim, claimClass(claim));
    if (why === undefined) {
      bindVolume(context, claim, volume);
      return;
    }
    events.warning(claim, 'VolumeMismatch', `Cannot bind to requested volume "${volumeName}": ${why}`);
    setUnboundPhase(context, claim, 'Pending');
  } else if (refersTo(volume, claim)) {
    bindVolume(context, claim, volume);
  } else if (hasAnnotation(claim, annotation.boundByController)) {
    throw new Error(`invalid binding of claim ${keyOf(claim)} to volume "${volumeName}": volume already claimed`);
  } else {
    events.warning(claim, 'FailedBinding', `volume "${volumeName}" already bound to a different claim.`);
    setUnboundPhase(context, claim, 'Pending');
  }
}

function syncBoundClaim(context: BinderContext, claim: Claim): void {
  const { volumeName } = claim.spec;
  if (!volumeName) {
    const message = 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!';
    setUnboundPhase(context, claim, 'Lost', { reason: 'ClaimLost', message });
    return;
  }
  const volume = getObject(context.client, resources.volumes, { name: volumeName });
  if (volume === undefined) {
    const message = 'Bound claim has lost its PersistentVolume. Data on the volume is lost!';
    setUnboundPhase(context, claim, 'Lost', { reason: 'ClaimLost', message });
  } else if (volume.spec.claimRef === undefined || volume.spec.claimRef.uid === claim.metadata.uid) {
    bindVolume(context, claim, volume);
  } else {
    const message = 'Two claims are bound to the same volume, this one is bound incorrectly';
    setUnboundPhase(context, claim, 'Lost', { reason: 'ClaimMisbound', message });
  }
}

/**
 * Asks the class's provisioner, or the driver that replaced it, for a volume: both annotations on the claim, then the
 * event. A repeat writes the event only. The phase is not touched.
 *
 * @returns the claim as stored.
 * @throws {StatusError} if the claim cannot be written.
 */
function requestProvisioning(context: BinderContext, claim: Claim): Claim {
  const { client, events } = context;
  const className = claimClass(claim);
  const storageClass = getObject(client, resources.classes, { name: className });
  if (storageClass === undefined) {
    events.warning(claim, 'ProvisioningFailed', `storageclass.storage.k8s.io "${className}" not found`);
    return claim;
  }
  const provisioner = migratedPlugins.get(storageClass.provisioner) ?? storageClass.provisioner;
  if (provisioner.startsWith('kubernetes.io/')) {
    events.warning(claim, 'ProvisioningFailed', `no volume plugin matched name: ${provisioner}`);
    return claim;
  }
  const annotated = annotate(context, claim, provisioner);
  events.normal(
    annotated,
    'ExternalProvisioning',
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`,
  );
  return annotated;
}

function annotate({ client }: BinderContext, claim: Claim, provisioner: string): Claim {
  if (claim.metadata.annotations?.[annotation.storageProvisioner] === provisioner) return claim;
  return updateObject(client, resources.claims, claim, (copy) => {
    setAnnotation(copy, annotation.betaStorageProvisioner, provisioner);
    setAnnotation(copy, annotation.storageProvisioner, provisioner);
  });
}
