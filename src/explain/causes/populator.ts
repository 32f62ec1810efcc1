/** A data source that a volume populator fills in (kubernetes-csi/lib-volume-populator, volume-data-source-validator). */
import { nearestName } from '../../base/near-name.ts';
import { shortValue } from '../../base/short-value.ts';
import { requestedProvisioner } from '../../provision/claim-fields.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { ClusterEvent } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { binder, componentOf, recordedOf } from '../provisioning-events.ts';
import { isClaim, isSnapshot } from '../source-facts-reader.ts';
import { durationText, lastChangeMs, quotedError } from '../texts.ts';

/** A volume populator has done something about a claim by then, in milliseconds. */
const seenWithinMs = 5 * 60_000;
/** Without a VolumePopulator for the kind, in milliseconds. */
const registeredWithinMs = 30_000;
/** A volume that is filled for longer needs somebody, in milliseconds. */
const filledWithinMs = 60 * 60_000;

/** The reasons of the library with which populators are written. */
const failedReasons = /^(Populat|reasonPVCPrime)\w*(Error|Failed)$/;
const populatorReasons = /^(Populat|reasonPVCPrime)/;
/** Which it sets on a claim that it fills, after a prefix of the populator. */
const workFinalizer = '/populate-target-protection';

/** Of a source that neither is a claim nor a snapshot. */
export function checkPopulator(facts: ClaimFacts): Finding | undefined {
  const { claim, source, nowMs } = facts;
  if (source === undefined || isClaim(source) || isSnapshot(source)) return undefined;
  const others = [binder, 'default-scheduler', requestedProvisioner(claim)];
  const own = (found(facts.events) ?? []).filter(
    (event) =>
      populatorReasons.test(event.reason ?? '') ||
      // populators that are not written with that library have reasons of their own
      (event.type === 'Warning' && !others.includes(componentOf(event).split('_')[0])),
  );
  const said = own.length > 0 || (claim.metadata.finalizers ?? []).some((each) => each.endsWith(workFinalizer));
  if (said) return atWork(own, facts);
  const kind = shortValue(source.kind);
  const base = `The data source of the claim is a ${kind}, which needs a volume populator for this kind; the provisioner alone cannot fill the volume`;
  const ageMs = nowMs - lastChangeMs(claim);
  const near = unregistered(facts);
  const isLate = ageMs > (near === undefined ? seenWithinMs : registeredWithinMs);
  const held = { state: isLate ? 'stuck' : 'waiting', cause: 'source-not-ready' } as const;
  if (isLate && near !== undefined) {
    return {
      ...held,
      message: `${base}, and no VolumePopulator for ${kind} of ${shortValue(source.apiGroup)} is registered${near === '' ? '' : `; one for ${near} is`}.`,
      cure:
        near === ''
          ? 'Install the volume populator for this kind, with its VolumePopulator: kubectl get volumepopulators'
          : `If ${near} is meant, recreate the claim with it in spec.dataSourceRef; else install the populator: kubectl get volumepopulators`,
    };
  }
  if (near !== undefined) {
    return {
      ...held,
      message: `${base}, and none is registered so far.`,
      cure: 'Nothing, if one is being installed. Otherwise install the volume populator for this kind, with its VolumePopulator (kubectl get volumepopulators), or recreate the claim without this data source',
    };
  }
  return {
    ...held,
    message: `${base}.${isLate ? ` Nothing has changed the claim for ${durationText(ageMs)}.` : ''}`,
    cure: isLate
      ? 'Check that a volume populator for this kind is installed and runs, and see its events about the claim'
      : 'Nothing yet: a volume populator fills the volume and then binds the claim',
  };
}

/**
 * Whether no populator is registered for the kind of the source.
 *
 * @returns a kind that is written almost alike, as `KIND of GROUP`, or empty; undefined: one is registered, or that cannot be seen.
 */
function unregistered({ source, populators }: ClaimFacts): string | undefined {
  const registered = found(populators)?.map(({ sourceKind }) => sourceKind ?? {});
  if (registered === undefined || source === undefined) return undefined;
  if (registered.some(({ group = '', kind }) => group === source.apiGroup && kind === source.kind)) return undefined;
  const nameOf = (group: string, kind: string): string => `${kind} of ${group}`;
  const names = registered.map(({ group = '', kind = '' }) => nameOf(group, kind));
  const sameKind = registered.find(({ kind }) => kind === source.kind);
  if (sameKind !== undefined) return nameOf(sameKind.group ?? '', source.kind);
  return nearestName(nameOf(source.apiGroup, source.kind), names) ?? '';
}

/** What the populator has recorded about the claim. */
function atWork(own: readonly ClusterEvent[], { claim, source, nowMs }: ClaimFacts): Finding {
  const { namespace = '', uid = '' } = claim.metadata;
  const newest = recordedOf(own);
  const reason = own.findLast(({ message }) => message === newest?.text)?.reason ?? '';
  const sourceText = `${shortValue(source?.kind ?? '')} ${source?.namespace ?? namespace}/${shortValue(source?.name ?? '')}`;
  if (reason === 'PopulatorDataSourceNotFound') {
    return {
      ...{ state: 'stuck', cause: 'source-missing' },
      message: `${sourceText}, the data source of the claim, does not exist: the volume populator does not find it.`,
      cure: 'Create the source: the populator goes on then; or recreate the claim with another one',
    };
  }
  const held = { cause: 'source-not-ready' } as const;
  const component = own.map(componentOf).at(-1) ?? '';
  const isWarning = own.some(({ type, message }) => type === 'Warning' && message === newest?.text);
  if (newest !== undefined && (failedReasons.test(reason) || isWarning)) {
    return {
      ...{ state: 'stuck', ...held },
      message: `The volume populator failed to fill the volume from ${sourceText}, ${durationText(nowMs - newest.atMs)} ago: ${quotedError(newest.text)}`,
      cure: `Do what it says, such as to correct ${sourceText}; the populator (${shortValue(component)}) tries again. The log is that of its Pod: kubectl get pods,pvc -A | grep prime-${uid}`,
    };
  }
  const sinceMs = nowMs - (newest?.sinceMs ?? lastChangeMs(claim));
  const isLate = sinceMs > filledWithinMs;
  return {
    ...{ state: isLate ? 'stuck' : 'waiting', ...held },
    message: `A volume populator has been filling the volume from ${sourceText} for ${durationText(sinceMs)}.`,
    cure: isLate
      ? `Look at its temporary claim and Pod, in the namespace of the populator: kubectl get pvc -A --field-selector metadata.name=prime-${uid}`
      : 'Nothing yet: the populator binds the claim once the volume is filled',
  };
}
