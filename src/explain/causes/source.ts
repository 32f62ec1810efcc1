/** What the claim names besides its class: a data source, with the grant for it, and a VolumeAttributesClass. */
import { quantityBytes } from '../../base/quantity.ts';
import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { allowsSource } from '../../provision/reference-grant.ts';
import { attempts, type FailedAttempt } from '../attempts.ts';
import { type ClaimFacts, isClaim, isSnapshot, provisionerOf, type SourceReference } from '../claim-facts-reader.ts';
import type { Snapshot } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { isInTree } from '../provisioner-facts.ts';
import { durationText, lastChangeMs } from '../time-text.ts';
import { defineCause } from './cause.ts';

const missingCure = 'Create the source, or recreate the claim with another one';

/** The data source of the claim does not exist. */
export const sourceMissing = defineCause({
  name: 'source-missing',
  failures: [
    {
      pattern: /error getting (PVC|snapshot|snapshotcontent) |^the PVC source (not found for PVC|does not belong) /,
      cure: missingCure,
    },
  ],
});

export function checkSourceExists({ source, sourceClaim, snapshot }: ClaimFacts): Finding | undefined {
  const reading = sourceClaim ?? snapshot;
  if (source === undefined || reading === undefined) return undefined;
  if (reading.kind === 'unreadable') return { state: 'unknown', detail: reading.why };
  if (reading.kind === 'found') return undefined;
  return {
    state: 'stuck',
    cause: 'source-missing',
    message: reading.unserved
      ? `The data source of the claim is ${sourceName(source)}, and the cluster does not have this kind.`
      : `${sourceName(source)}, the data source of the claim, does not exist.`,
    cure: reading.unserved ? 'Install the CRDs of external-snapshotter and its controller' : missingCure,
  };
}

function sourceName({ kind, namespace, name }: SourceReference): string {
  return `${shortValue(kind)} ${namespace}/${shortValue(name)}`;
}

const modeCure = 'Recreate the claim with the volumeMode of its source: a clone must have the same';
const sizeCure = 'Recreate the claim with at least the size of its source, or with another source';
const waitCure =
  'Wait until the source is ready; if it stays like this, find out why. It must be of the same driver as the claim';

/** The data source of the claim is not bound, not ready, being deleted, does not fit, or needs a volume populator. */
export const sourceNotReady = defineCause({
  name: 'source-not-ready',
  failures: [
    { pattern: /must have the same volume mode for cloning/, cure: modeCure },
    { pattern: /must be greater than or equal in size|is less than the size .* for the source/, cure: sizeCure },
    {
      pattern:
        /^error getting handle for DataSource .*(not bound( or invalid)?$|is not Ready$|must have a status of Bound)/,
      cure: waitCure,
    },
    {
      pattern: /^error getting handle for DataSource /,
      cure: 'Wait until the source is ready, or recreate the claim with a source that fits its driver, size and volume mode',
    },
  ],
});

/** A volume populator has done something about a claim by then, in milliseconds. */
const populatedWithinMs = 5 * 60_000;

export function checkSourceReady({ claim, source, sourceClaim, snapshot }: ClaimFacts): Finding | undefined {
  if (source === undefined || (sourceClaim ?? snapshot) === undefined) return undefined;
  const problem = (sourceClaim && claimProblem(claim, found(sourceClaim))) ?? snapshotProblem(claim, found(snapshot));
  if (problem === undefined) return { state: 'ok', detail: `${sourceName(source)} is ready` };
  const { state, text, cure } = problem;
  return {
    state,
    cause: 'source-not-ready',
    message: `${sourceName(source)}, the data source of the claim, ${text}.`,
    cure: cure ?? (state === 'waiting' ? waitCure : 'Recreate the claim with another source'),
  };
}

/** Of a source that neither is a claim nor a snapshot. */
export function checkPopulator({ claim, source, nowMs }: ClaimFacts): Finding | undefined {
  if (source === undefined || isClaim(source) || isSnapshot(source)) return undefined;
  const kind = shortValue(source.kind);
  const ageMs = nowMs - lastChangeMs(claim);
  const isLate = ageMs > populatedWithinMs;
  return {
    state: isLate ? 'stuck' : 'waiting',
    cause: 'source-not-ready',
    message: `The data source of the claim is a ${kind}, which needs a volume populator for this kind; the provisioner alone cannot fill the volume.${isLate ? ` Nothing has changed the claim for ${durationText(ageMs)}.` : ''}`,
    cure: isLate
      ? 'Check that a volume populator for this kind is installed and runs, and see its events about the claim'
      : 'Nothing yet: a volume populator fills the volume and then binds the claim',
  };
}

interface SourceProblem {
  state: 'waiting' | 'stuck';
  text: string;
  cure?: string;
}

function claimProblem(claim: PersistentVolumeClaim, source?: PersistentVolumeClaim): SourceProblem | undefined {
  if (source === undefined) return undefined;
  const phase = source.status?.phase ?? 'new';
  if (source.metadata.deletionTimestamp !== undefined) return { state: 'stuck', text: 'is being deleted' };
  if (phase !== 'Bound') return { state: phase === 'Lost' ? 'stuck' : 'waiting', text: `is ${phase} and not Bound` };
  const modes = [claim, source].map(({ spec }) => spec.volumeMode ?? 'Filesystem');
  if (modes[0] !== modes[1]) {
    const text = `has volumeMode ${modes[1] ?? ''}, and the claim requests ${modes[0] ?? ''}`;
    return {
      state: 'stuck',
      text,
      cure: modeCure,
    };
  }
  return sizeProblem(claim, source.spec.resources?.requests?.['storage']);
}

function snapshotProblem(claim: PersistentVolumeClaim, snapshot?: Snapshot): SourceProblem | undefined {
  if (snapshot === undefined) return undefined;
  const { readyToUse, restoreSize, error } = snapshot.status ?? {};
  if (readyToUse === true) return sizeProblem(claim, restoreSize);
  if (error?.message !== undefined) return { state: 'stuck', text: `failed: ${error.message}` };
  return { state: 'waiting', text: 'is not ready to use' };
}

function sizeProblem(claim: PersistentVolumeClaim, size: string | number | undefined): SourceProblem | undefined {
  const requested = claim.spec.resources?.requests?.['storage'] ?? 0;
  if (size === undefined || quantityBytes(requested) >= quantityBytes(size)) return undefined;
  const text = `has ${size}, which is more than the ${requested} that the claim requests`;
  return { state: 'stuck', text, cure: sizeCure };
}

/** No ReferenceGrant allows the data source, which is in another namespace (Gateway API, "ReferenceGrant"). */
export const grantMissing = defineCause({
  name: 'grant-missing',
  failures: [
    {
      pattern: /^accessing .* isn't allowed$/,
      cure: 'Create a ReferenceGrant in the namespace of the source',
    },
  ],
});

export function checkGrant({ claim, source, grants }: ClaimFacts): Finding | undefined {
  if (source === undefined || grants === undefined) return undefined;
  if (grants.kind === 'unreadable') return { state: 'unknown', detail: grants.why };
  const allowed = (found(grants) ?? []).some((grant) => allowsSource(grant, claim.metadata.namespace ?? '', source));
  if (allowed) return { state: 'ok', detail: `a ReferenceGrant in ${source.namespace} allows it` };
  return {
    state: 'stuck',
    cause: 'grant-missing',
    message: `No ReferenceGrant in namespace ${source.namespace} allows claims of ${claim.metadata.namespace ?? ''} to use ${shortValue(source.kind)} ${shortValue(source.name)} as their data source.`,
    cure: `Create a ReferenceGrant in ${source.namespace} from PersistentVolumeClaims of ${claim.metadata.namespace ?? ''} to this ${shortValue(source.kind)}`,
  };
}

const disabledText = 'CrossNamespaceVolumeDataSource feature is disabled';

/** What the claim needs is off in the provisioner. */
export const featureDisabled = defineCause({
  name: 'feature-disabled',
  failures: [
    {
      pattern: new RegExp(disabledText),
      cure: 'Start the provisioner with --feature-gates=CrossNamespaceVolumeDataSource=true; a ReferenceGrant alone changes nothing. Or recreate the claim with a source of its own namespace',
    },
  ],
});

/** Comes before the grant that would be missing as well. */
export function checkFeatureEnabled(facts: ClaimFacts): FailedAttempt | undefined {
  const { failed } = attempts(facts);
  return failed?.text.includes(disabledText) === true ? { failed } : undefined;
}

const missingClassCure = 'Create it, or recreate the claim without spec.volumeAttributesClassName';
const bindCure = 'Recreate the claim without spec.volumeAttributesClassName, or enable the VolumeAttributesClass API';
const driverCure = 'Recreate the claim with a VolumeAttributesClass of its driver';

/** The claim's VolumeAttributesClass does not exist, is not served, is for another driver, or differs from its volume's. */
export const attributesClass = defineCause({
  name: 'attributes-class',
  failures: [
    { pattern: /^VAC .* does not match driver name/, cure: driverCure },
    {
      pattern: /volumeattributesclass.* is forbidden/s,
      cure: 'Permit the provisioner to get VolumeAttributesClasses: its log has the rule to add',
    },
    {
      pattern: /MODIFY_VOLUME/,
      cure: 'Recreate the claim without spec.volumeAttributesClassName: the driver supports no attributes classes',
    },
    { pattern: /was saved without its volume attributes class /, cure: bindCure },
    { pattern: /volumeattributesclass/, cure: missingClassCure },
  ],
});

/** The binder does not bind a volume with another attributes class. */
export function checkAttributesBind({ claim, volume }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if (existing === undefined || existing.metadata.deletionTimestamp !== undefined) return undefined;
  if ((claim.spec.volumeAttributesClassName ?? '') === (existing.spec.volumeAttributesClassName ?? ''))
    return undefined;
  return {
    state: 'stuck',
    cause: 'attributes-class',
    message: `PersistentVolume ${existing.metadata.name} exists for the claim, and kube-controller-manager has not bound them yet. Their volumeAttributesClassName differs, so they will not be bound.`,
    cure: bindCure,
  };
}

export function checkAttributesClass({ claim, storageClass, attributesClass }: ClaimFacts): Finding | undefined {
  if (attributesClass === undefined) return undefined;
  const name = claim.spec.volumeAttributesClassName ?? '';
  const driver = provisionerOf(claim, found(storageClass));
  if (attributesClass.kind === 'unreadable') return { state: 'unknown', detail: attributesClass.why };
  const held = { state: 'stuck', cause: 'attributes-class' } as const;
  if (attributesClass.kind === 'missing') {
    return {
      ...held,
      message: attributesClass.unserved
        ? `The claim names VolumeAttributesClass ${name}, and the API server does not serve this kind.`
        : `VolumeAttributesClass ${name} does not exist.`,
      cure: missingClassCure,
    };
  }
  const { driverName = '' } = attributesClass.value;
  if (driverName === driver || driver === '' || isInTree(driver)) return { state: 'ok', detail: `${name} exists` };
  return {
    ...held,
    message: `VolumeAttributesClass ${name} is for driver ${driverName}, and the claim is for driver ${driver}.`,
    cure: driverCure,
  };
}
