/** What the last attempt lacked, and is there now: the error is from before. */
import { allowsSource } from '../provision/objects.ts';
import type { KubeObject } from '../kube/kube-object.ts';
import { missingAnnotations } from './causes/failure.ts';
import { snapshotProblem } from './causes/snapshot.ts';
import { sourceName } from './causes/source.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import { found, type Reading } from './cluster-reader.ts';
import type { Recorded } from './provisioning-events.ts';
import { lastChangeMs } from './time-text.ts';

/** By how much the clocks of the provisioner's node and of the API server may differ, in milliseconds. */
const maxSkewMs = 5000;

export interface Arrival {
  /** As in `Secret ns/key exists`. */
  text: string;
  /** In milliseconds since the Unix epoch. */
  sinceMs: number;
}

/** @returns undefined where the error may still hold. */
export function arrival({ text, atMs }: Recorded, facts: ClaimFacts): Arrival | undefined {
  const came = arrived(text, facts);
  return came === undefined || came.sinceMs < atMs - maxSkewMs ? undefined : came;
}

function arrived(text: string, facts: ClaimFacts): Arrival | undefined {
  const { claim, secret, source, sourceClaim, snapshot, grants, attributesClass } = facts;
  if (/error getting secret .* not found/s.test(text)) {
    const { namespace = '', name = '' } = secret?.reference ?? {};
    return madeAnew(secret?.reading, `Secret ${namespace}/${name} exists`);
  }
  if (/error resolving value .*invalid tokens: /s.test(text)) {
    const keys = missingAnnotations(text);
    const isThere = keys.length > 0 && keys.every((key) => claim.metadata.annotations?.[key] !== undefined);
    return isThere
      ? { text: `The claim has the annotation ${keys.join(', ')}`, sinceMs: lastChangeMs(claim) }
      : undefined;
  }
  if (/volumeattributesclass.* not found/s.test(text)) {
    return madeAnew(attributesClass, `VolumeAttributesClass ${claim.spec.volumeAttributesClassName ?? ''} exists`);
  }
  if (source === undefined) return undefined;
  const name = sourceName(source);
  if (/^accessing .* isn't allowed$/.test(bare(text))) {
    const grant = found(grants)?.find((each) => allowsSource(each, claim.metadata.namespace ?? '', source));
    return grant && { text: `ReferenceGrant ${grant.metadata.name} allows ${name}`, sinceMs: lastChangeMs(grant) };
  }
  if (/error getting (PVC|snapshot) .* not (found|installed)/s.test(text)) {
    return madeAnew<KubeObject>(sourceClaim ?? snapshot, `${name} exists`);
  }
  if (/is not Ready$|not bound( or invalid)?$|must have a status of Bound|error getting snapshotcontent /.test(text)) {
    const value = found<KubeObject>(sourceClaim ?? snapshot);
    const isReady = value !== undefined && (snapshot === undefined || snapshotProblem(facts) === undefined);
    return isReady ? { text: `${name} is ready`, sinceMs: lastChangeMs(value) } : undefined;
  }
  return undefined;
}

function bare(text: string): string {
  return text.replace(/^failed to provision volume with StorageClass "[^"]*": /, '');
}

function madeAnew<T extends KubeObject>(reading: Reading<T> | undefined, text: string): Arrival | undefined {
  const made = found(reading)?.metadata.creationTimestamp;
  return typeof made !== 'string' ? undefined : { text, sinceMs: Date.parse(made) };
}
