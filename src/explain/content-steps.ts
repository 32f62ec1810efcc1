/** What the volume needs besides its driver: source, grant, attributes class, Secret. */
import { quantityBytes } from '../base/quantity.ts';
import { shortValue } from '../base/short-value.ts';
import type { PersistentVolumeClaim } from '../provision/objects.ts';
import { allowsSource } from '../provision/reference-grant.ts';
import type { ClaimFacts, SourceReference } from './claim-facts-reader.ts';
import { provisionerOf } from './claim-facts-reader.ts';
import type { Snapshot } from './cluster-objects.ts';
import { found, type Reading } from './cluster-reader.ts';
import type { Finding } from './explanation.ts';
import { isInTree } from './provisioner-facts.ts';

/** The claim's data source: a claim or a snapshot. */
export function lookAtSource({ claim, source, sourceClaim, snapshot }: ClaimFacts): Finding | undefined {
  if (source === undefined) return undefined;
  const name = `${shortValue(source.kind)} ${source.namespace}/${shortValue(source.name)}`;
  const reading: Reading<PersistentVolumeClaim | Snapshot> | undefined = sourceClaim ?? snapshot;
  if (reading === undefined) return populator(source);
  if (reading.kind === 'unreadable') return { state: 'unknown', detail: reading.why };
  if (reading.kind === 'missing') {
    return {
      state: 'stuck',
      cause: 'source-missing',
      message: reading.unserved
        ? `The data source of the claim is ${name}, and the cluster does not have this kind.`
        : `${name}, the data source of the claim, does not exist.`,
      cure: reading.unserved
        ? 'Install the CRDs of external-snapshotter and its controller'
        : 'Create the source, or recreate the claim with another one',
    };
  }
  const problem = (sourceClaim && claimProblem(claim, found(sourceClaim))) ?? snapshotProblem(claim, found(snapshot));
  if (problem === undefined) return { state: 'ok', detail: `${name} is ready` };
  return {
    state: problem.state,
    cause: 'source-not-ready',
    message: `${name}, the data source of the claim, ${problem.text}.`,
    cure: problem.state === 'waiting' ? 'Wait for the source' : 'Recreate the claim with another source or size',
  };
}

function populator({ kind }: SourceReference): Finding {
  return {
    state: 'waiting',
    cause: 'source-not-ready',
    message: `The data source of the claim is a ${shortValue(kind)}, which needs a volume populator for this kind; the provisioner alone cannot fill the volume.`,
    cure: 'Check that a volume populator for this kind is installed and runs, and see its events about the claim',
  };
}

interface SourceProblem {
  state: 'waiting' | 'stuck';
  text: string;
}

function claimProblem(claim: PersistentVolumeClaim, source?: PersistentVolumeClaim): SourceProblem | undefined {
  if (source === undefined) return undefined;
  const phase = source.status?.phase ?? 'new';
  if (source.metadata.deletionTimestamp !== undefined) return { state: 'stuck', text: 'is being deleted' };
  if (phase !== 'Bound') return { state: phase === 'Lost' ? 'stuck' : 'waiting', text: `is ${phase} and not Bound` };
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
  return { state: 'stuck', text: `has ${size}, which is more than the ${requested} that the claim asks for` };
}

/** Sources of other namespaces need a grant there (Gateway API, "ReferenceGrant"). */
export function lookAtGrant({ claim, source, grants }: ClaimFacts): Finding | undefined {
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

/** One grant must allow both ends. */
export function lookAtAttributesClass({ claim, storageClass, attributesClass }: ClaimFacts): Finding | undefined {
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
      cure: 'Create it, or recreate the claim without spec.volumeAttributesClassName',
    };
  }
  const { driverName = '' } = attributesClass.value;
  if (driverName === driver || driver === '' || isInTree(driver)) return { state: 'ok', detail: `${name} exists` };
  return {
    ...held,
    message: `VolumeAttributesClass ${name} is for driver ${driverName}, and the claim is for driver ${driver}.`,
    cure: 'Recreate the claim with a VolumeAttributesClass of its driver',
  };
}

/** The Secret for `CreateVolume`. None of its content is kept. */
export function lookAtSecret({ secret }: ClaimFacts): Finding | undefined {
  if (secret === undefined) return undefined;
  const { reference, reading } = secret;
  const name = `${reference.namespace}/${reference.name}`;
  if (reading.kind === 'unreadable') return { state: 'unknown', detail: reading.why };
  if (reading.kind === 'found') return { state: 'ok', detail: `Secret ${name} exists` };
  return {
    state: 'stuck',
    cause: 'secret-missing',
    message: `Secret ${name}, which the StorageClass names for the driver, does not exist.`,
    cure: 'Create the Secret, or correct the secret parameters of the class: delete it and create it again',
  };
}
