/** The data source of the claim is not bound, not ready, being deleted, does not fit, or needs a volume populator. */
import { quantityBytes } from '../../base/quantity.ts';
import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { type ClaimFacts, isClaim, isSnapshot } from '../claim-facts-reader.ts';
import type { Snapshot } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { durationText, lastChangeMs } from '../time-text.ts';
import { defineCause } from './cause.ts';
import { sourceName } from './source-missing.ts';

const modeCure = 'Recreate the claim with the volumeMode of its source: a clone must have the same';
const sizeCure = 'Recreate the claim with at least the size of its source, or with another source';
const waitCure =
  'Wait until the source is ready; if it stays like this, find out why. It must be of the same driver as the claim';

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
