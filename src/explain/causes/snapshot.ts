/** A VolumeSnapshot as the data source of a claim: who of the snapshot machinery has refused what (kubernetes-csi/external-snapshotter). */
import { nameList } from '../../base/name-list.ts';
import { nearestName } from '../../base/near-name.ts';
import { quantityBytes } from '../../base/quantity.ts';
import { shellCommand } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { attempts } from '../attempts.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import type { Snapshot, SnapshotContent } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Link } from '../explanation.ts';
import { contentName } from '../source-facts-reader.ts';
import { durationText, lastChangeMs, lowerFirst, quotedError } from '../texts.ts';
import { storageCure } from './storage-words.ts';

/** Why a source cannot be used, after its name. */
export interface SourceProblem {
  state: 'waiting' | 'stuck';
  /** As in `VolumeSnapshot ns/s, the data source of the claim, TEXT.` */
  text: string;
  cure: string;
  next?: readonly Link[];
}

const restoreProtection = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';
const beingCreatedKey = 'snapshot.storage.kubernetes.io/volumesnapshot-being-created';
const allowModeChangeKey = 'snapshot.storage.kubernetes.io/allow-volume-mode-change';
const defaultClassKey = 'snapshot.storage.kubernetes.io/is-default-class';
/** The snapshot-controller and the csi-snapshotter have looked at an object by then, in milliseconds. */
const seenWithinMs = 30_000;
/** A pause of theirs between two attempts is no longer, in milliseconds. */
const triedWithinMs = 6 * 60_000;
/** A snapshot that takes longer needs somebody, in milliseconds. */
const takenWithinMs = 60 * 60_000;
/** Max names in a message. */
const maxNamed = 5;

const otherSourceCure = 'Recreate the claim with another source';
export const snapshotControllerCure =
  'Install the snapshot-controller of kubernetes-csi/external-snapshotter, or see why it does not work: kubectl get pods -A -l app.kubernetes.io/name=snapshot-controller';

/** @returns undefined for a snapshot that can be restored, as far as is known. */
export function snapshotProblem(facts: ClaimFacts): SourceProblem | undefined {
  const snapshot = found(facts.snapshot);
  if (snapshot === undefined) return undefined;
  const { deletionTimestamp, finalizers = [] } = snapshot.metadata;
  if (deletionTimestamp !== undefined && !finalizers.includes(restoreProtection)) {
    return {
      state: 'stuck',
      text: 'is being deleted, so no restore begins; and the snapshot-controller keeps it while this claim is Pending',
      cure: 'Delete the claim, and recreate it with another source',
    };
  }
  const { readyToUse, error } = snapshot.status ?? {};
  if (readyToUse === true) return misfit(snapshot, facts);
  if (error?.message !== undefined) return failedSnapshot(snapshot, error.message, facts);
  return unreadySnapshot(snapshot, facts);
}

/** What a snapshot that is ready has that the claim cannot use. */
function misfit(snapshot: Snapshot, facts: ClaimFacts): SourceProblem | undefined {
  const { claim, storageClass, snapshotContent } = facts;
  const tooLarge = sizeProblem(claim, snapshot.status?.restoreSize);
  if (tooLarge !== undefined) return tooLarge;
  const content = found(snapshotContent);
  if (snapshotContent?.kind === 'missing' && snapshot.status?.boundVolumeSnapshotContentName !== undefined) {
    return {
      state: 'stuck',
      text: `is ready, and its VolumeSnapshotContent ${contentName(snapshot)}, which names the storage, does not exist any more`,
      cure: `If the storage still has the snapshot, create that VolumeSnapshotContent again, with its snapshotHandle, and the claim goes on. Otherwise: ${lowerFirst(otherSourceCure)}`,
    };
  }
  const driver = provisionerOf(claim, found(storageClass));
  const ofDriver = content?.spec?.driver ?? driver;
  if (driver !== '' && ofDriver !== driver) {
    return {
      state: 'stuck',
      text: `is of driver ${shortValue(ofDriver)}, and the claim is for driver ${shortValue(driver)}`,
      cure: `Recreate the claim with a StorageClass whose provisioner is ${shortValue(ofDriver)}: kubectl get storageclass`,
    };
  }
  return (content && otherSnapshot(snapshot, content)) ?? (content && otherMode(content, facts));
}

/** Content and snapshot name each other. */
function otherSnapshot({ metadata }: Snapshot, { metadata: of, spec }: SnapshotContent): SourceProblem | undefined {
  const { namespace, name, uid } = spec?.volumeSnapshotRef ?? {};
  const where = `${namespace ?? ''}/${name ?? ''}`;
  if (namespace !== metadata.namespace || name !== metadata.name) {
    return {
      state: 'stuck',
      text: `names VolumeSnapshotContent ${of.name}, whose spec.volumeSnapshotRef is ${shortValue(where)}`,
      cure: 'Create a VolumeSnapshotContent of its own for this snapshot, with the same snapshotHandle, and recreate the snapshot with its name',
    };
  }
  if (uid === undefined || uid === '' || uid === metadata.uid) return undefined;
  return {
    state: 'stuck',
    text: `names VolumeSnapshotContent ${of.name}, which belongs to an earlier snapshot of the same name (spec.volumeSnapshotRef.uid)`,
    cure: `Create a VolumeSnapshotContent without that uid, with the same snapshotHandle, and recreate the snapshot with its name: kubectl get volumesnapshotcontent ${of.name} -o yaml`,
  };
}

/** Of a claim that is smaller than its source. */
export const sizeCure = 'Recreate the claim with at least the size of its source, or with another source';

export function sizeProblem(
  claim: PersistentVolumeClaim,
  size: string | number | undefined,
): SourceProblem | undefined {
  const requested = claim.spec.resources?.requests?.['storage'] ?? 0;
  if (size === undefined || quantityBytes(requested) >= quantityBytes(size)) return undefined;
  return {
    state: 'stuck',
    text: `has ${size}, which is more than the ${requested} that the claim requests`,
    cure: sizeCure,
  };
}

export const modeText = 'modifies the mode of the source volume';

/** Only the provisioner knows whether it prevents a conversion. */
function otherMode({ metadata, spec }: SnapshotContent, facts: ClaimFacts): SourceProblem | undefined {
  const { failed } = attempts(facts);
  const [from, to = 'Filesystem'] = [spec?.sourceVolumeMode, facts.claim.spec.volumeMode];
  if (failed?.text.includes(modeText) !== true || from === undefined || from === to) return undefined;
  if (metadata.annotations?.[allowModeChangeKey] === 'true') return undefined;
  const command = shellCommand([
    'kubectl',
    'annotate',
    'volumesnapshotcontent',
    metadata.name,
    `${allowModeChangeKey}=true`,
    '--overwrite',
  ]);
  const cure = `Recreate the claim with volumeMode ${from}; or an administrator who trusts the data lets it be converted`;
  return {
    state: 'stuck',
    text: `was taken of a volume with volumeMode ${from}, and the claim requests ${to}`,
    cure: command === undefined ? cure : `${cure}: ${command}`,
  };
}

/** Nobody has reported an error. */
function unreadySnapshot(snapshot: Snapshot, { snapshotContent, nowMs }: ClaimFacts): SourceProblem {
  const ageMs = nowMs - lastChangeMs(snapshot);
  const isLate = ageMs > seenWithinMs;
  if (snapshot.status === undefined) {
    return {
      state: isLate ? 'stuck' : 'waiting',
      text: `is not ready, and no snapshot-controller has worked on it${isLate ? ` for ${durationText(ageMs)}` : ' yet'}`,
      cure: isLate ? snapshotControllerCure : 'Nothing yet: the snapshot-controller takes a moment',
    };
  }
  const content = found(snapshotContent);
  if (snapshotContent?.kind === 'missing') {
    return {
      state: isLate ? 'stuck' : 'waiting',
      text: `is not ready, and its VolumeSnapshotContent ${contentName(snapshot)} does not exist`,
      cure: isLate ? 'Recreate the snapshot' : 'Nothing yet: the snapshot-controller takes a moment',
    };
  }
  if (content === undefined) {
    return {
      state: ageMs > takenWithinMs ? 'stuck' : 'waiting',
      text: `is not ready for ${durationText(ageMs)}${snapshotContent?.kind === 'unreadable' ? ` (${snapshotContent.why})` : ''}`,
      cure: `See how far it is: kubectl describe volumesnapshotcontent ${contentName(snapshot)}`,
    };
  }
  return takenSnapshot(content, nowMs);
}

/** The driver takes it, or nobody has asked the driver. */
function takenSnapshot(content: SnapshotContent, nowMs: number): SourceProblem {
  const driver = shortValue(content.spec?.driver ?? '');
  const { name, annotations = {} } = content.metadata;
  const isSeen = content.status !== undefined || beingCreatedKey in annotations;
  const ageMs = nowMs - Date.parse(content.metadata.creationTimestamp ?? '');
  if (!isSeen) {
    const isLate = ageMs > seenWithinMs;
    return {
      state: isLate ? 'stuck' : 'waiting',
      text: `is not ready, and no csi-snapshotter of driver ${driver} has worked on its VolumeSnapshotContent ${name}${isLate ? ` for ${durationText(ageMs)}` : ' yet'}`,
      cure: isLate
        ? `Check that the driver ${driver} runs with the sidecar csi-snapshotter, and see its log: kubectl get leases -A --field-selector metadata.name=external-snapshotter-leader-${driver.replaceAll(/[^a-zA-Z0-9-]/g, '-')}`
        : 'Nothing yet: the sidecar csi-snapshotter takes a moment',
    };
  }
  const isLate = ageMs > takenWithinMs;
  return {
    state: isLate ? 'stuck' : 'waiting',
    text: `is being taken by driver ${driver}, for ${durationText(ageMs)}`,
    cure: isLate
      ? `See at the storage how far it is, and in the log of the driver: kubectl describe volumesnapshotcontent ${name}`
      : 'Nothing yet: the driver is asked again until the snapshot is ready',
  };
}

interface SnapshotError {
  pattern: RegExp;
  problem: (known: { snapshot: Snapshot; facts: ClaimFacts; name: string }) => Omit<SourceProblem, 'state'>;
}

/** What the snapshot-controller and the csi-snapshotter write into `status.error` of a snapshot; the first that fits. */
const snapshotErrors: readonly SnapshotError[] = [
  { pattern: /^Failed to get snapshot class /, problem: lacksClass },
  { pattern: /cannot find default snapshot class/, problem: lacksDefault },
  { pattern: /\d+ default snapshot classes were found/, problem: hasSeveralDefaults },
  {
    pattern: /the PVC (\S+) is not yet bound to a PV/,
    problem: ({ snapshot: { metadata }, name }) => ({
      text: `waits for claim ${name}, of which it is to be taken and which is not bound`,
      cure: `Have that claim bound: csi-provisioner why ${metadata.namespace ?? ''}/${name}`,
      next: [
        {
          namespace: metadata.namespace ?? '',
          name,
          way: `It waits for VolumeSnapshot ${metadata.name}, which is to be taken of claim ${name}`,
        },
      ],
    }),
  },
  {
    pattern: /failed to retrieve PVC (\S+) from/,
    problem: ({ name }) => ({
      text: `was never taken: claim ${name}, of which it was to be taken, does not exist`,
      cure: otherSourceCure,
    }),
  },
  {
    pattern: /claim is being deleted|because it is being deleted/,
    problem: () => ({
      text: 'was never taken: the claim of which it was to be taken is being deleted',
      cure: otherSourceCure,
    }),
  },
  {
    pattern: /snapshotting non-CSI volumes|cannot find CSI PersistentVolumeSource/,
    problem: () => ({
      text: 'was never taken: the volume of which it was to be taken is of no CSI driver',
      cure: `${otherSourceCure}: only volumes of CSI drivers have snapshots`,
    }),
  },
  {
    pattern: /^VolumeSnapshotContent is missing/,
    problem: ({ snapshot }) => ({
      text: `names VolumeSnapshotContent ${contentName(snapshot)}, which does not exist`,
      cure: 'Create it, with the handle of the snapshot at the storage and with spec.volumeSnapshotRef to this snapshot; or recreate the claim with another source',
    }),
  },
  {
    pattern:
      /is bound to a different snapshot|VolumeSnapshotRef does not match|not bound to the VolumeSnapshot correctly/,
    problem({ snapshot, facts }) {
      const content = found(facts.snapshotContent);
      return (
        (content && otherSnapshot(snapshot, content)) ?? {
          text: `names VolumeSnapshotContent ${contentName(snapshot)}, which names another snapshot`,
          cure: 'Correct spec.volumeSnapshotRef: create a VolumeSnapshotContent with this snapshot in it, and recreate the snapshot with its name',
        }
      );
    },
  },
  {
    pattern: /cannot get credentials|failed to get (credentials|secret)/,
    problem: ({ snapshot, facts }) => ({
      text: `failed: ${quotedError(snapshot.status?.error?.message ?? '')}`,
      cure: `Create the Secret that its VolumeSnapshotClass or the annotations of its content name: kubectl describe volumesnapshotcontent ${found(facts.snapshotContent)?.metadata.name ?? contentName(snapshot)}`,
    }),
  },
  {
    pattern: /rpc error: code = (\w+)/,
    problem: ({ snapshot, facts }) => ({
      text: `failed in the driver: ${quotedError(snapshot.status?.error?.message ?? '')}`,
      cure: `${failedCure(snapshot.status?.error?.message ?? '')}, or recreate the claim with another source. The log of driver ${shortValue(found(facts.snapshotContent)?.spec?.driver ?? provisionerOf(facts.claim, found(facts.storageClass)))} says more: its container beside the sidecar csi-snapshotter`,
    }),
  },
];

/** Storages that take snapshots only of what nothing uses. */
const inUseWords = /\b(?:in-use|in use|attached|mounted|running)\b/i;

/** Storage that has none at all, or not of such a volume. */
const unsupportedWords = /\b(?:not|no longer) (?:\w+ )?(?:support|implement|allow|permit)|prohibited|Unimplemented/i;

function failedCure(text: string): string {
  if (unsupportedWords.test(text))
    return 'The storage takes no snapshots of such a volume, as the message says: use a type or class of storage that does';
  const known = storageCure(text);
  if (known !== undefined) return known;
  return inUseWords.test(text)
    ? 'Unless the error says otherwise: this storage takes no snapshot of a volume in use. End the Pods that use the source, or have the VolumeSnapshotClass force it, if the driver can (of Cinder: force-create: "true"), and create the snapshot again'
    : 'Do what it says';
}

const otherError: SnapshotError = {
  pattern: /(?:)/,
  problem: ({ snapshot }) => ({
    text: `failed: ${quotedError(snapshot.status?.error?.message ?? '')}`,
    cure: `See the events about it, or recreate the claim with another source: kubectl describe volumesnapshot -n ${snapshot.metadata.namespace ?? ''} ${snapshot.metadata.name}`,
  }),
};

/** After these codes the driver may still be at work, and is asked again. */
const unfinished = /code = (DeadlineExceeded|Aborted|Canceled) /;
/** A snapshot whose driver does not respond for longer needs somebody, in milliseconds. */
const unfinishedMs = 10 * 60_000;

function failedSnapshot(snapshot: Snapshot, message: string, facts: ClaimFacts): SourceProblem {
  const cured = curedMeanwhile(snapshot, facts);
  if (cured !== undefined) return cured;
  const fitting = snapshotErrors.find(({ pattern }) => pattern.test(message)) ?? otherError;
  const [, name = ''] = fitting.pattern.exec(message) ?? [];
  const said = fitting.problem({ snapshot, facts, name });
  const sinceMs = facts.nowMs - (Date.parse(snapshot.status?.error?.time ?? '') || lastChangeMs(snapshot));
  const goesOn = unfinished.test(message) && sinceMs < unfinishedMs;
  return goesOn
    ? { state: 'waiting', text: said.text, cure: 'Nothing yet: the driver is asked again' }
    : { state: 'stuck', ...said };
}

/** Its class exists now: the error is from before. */
function curedMeanwhile(snapshot: Snapshot, { snapshotClasses, nowMs }: ClaimFacts): SourceProblem | undefined {
  const { message = '', time = '' } = snapshot.status?.error ?? {};
  const name = snapshot.spec?.volumeSnapshotClassName;
  const now = found(snapshotClasses)?.find(({ metadata }) => metadata.name === name);
  if (now === undefined || !message.startsWith('Failed to get snapshot class ')) return undefined;
  const existsMs = nowMs - Math.max(Date.parse(now.metadata.creationTimestamp ?? ''), Date.parse(time) || 0);
  const isLate = existsMs > triedWithinMs;
  return {
    state: isLate ? 'stuck' : 'waiting',
    text: `had no VolumeSnapshotClass; ${name ?? ''} exists now, for ${durationText(existsMs)}`,
    cure: isLate ? snapshotControllerCure : 'Nothing: the snapshot-controller tries again within five minutes',
  };
}

function lacksClass({ snapshot, facts }: { snapshot: Snapshot; facts: ClaimFacts }): Omit<SourceProblem, 'state'> {
  const { namespace = '', name } = snapshot.metadata;
  const wanted = snapshot.spec?.volumeSnapshotClassName ?? '';
  const classes = found(facts.snapshotClasses) ?? [];
  const near = nearestName(
    wanted,
    classes.map(({ metadata }) => metadata.name),
  );
  const text = `cannot be taken: its VolumeSnapshotClass ${shortValue(wanted)} does not exist${near === undefined ? '' : `; ${near} does`}`;
  const usable = near ?? ownClasses(facts)[0];
  if (usable === undefined) return { text, cure: `Create VolumeSnapshotClass ${shortValue(wanted)}` };
  const patch = JSON.stringify({ spec: { volumeSnapshotClassName: usable } });
  const command = shellCommand([
    'kubectl',
    'patch',
    'volumesnapshot',
    name,
    '-n',
    namespace,
    '--type=merge',
    '-p',
    patch,
  ]);
  const cure = `Create that class, or name ${usable}`;
  return { text, cure: command === undefined ? cure : `${cure}: ${command}` };
}

function lacksDefault({ snapshot, facts }: { snapshot: Snapshot; facts: ClaimFacts }): Omit<SourceProblem, 'state'> {
  const driver = provisionerOf(facts.claim, found(facts.storageClass));
  const own = ownClasses(facts);
  const text = `cannot be taken: it names no VolumeSnapshotClass, and none of driver ${shortValue(driver)} is the default`;
  const [only] = own;
  if (only === undefined) {
    return {
      text,
      cure: `Create a VolumeSnapshotClass of driver ${shortValue(driver)} with the annotation ${defaultClassKey}=true`,
    };
  }
  const command = shellCommand([
    'kubectl',
    'annotate',
    'volumesnapshotclass',
    only,
    `${defaultClassKey}=true`,
    '--overwrite',
  ]);
  const { namespace = '', name } = snapshot.metadata;
  const cure = `Name one of ${nameList(own, maxNamed)} in spec.volumeSnapshotClassName of snapshot ${namespace}/${name}, or mark one as the default`;
  return { text, cure: command === undefined ? cure : `${cure}: ${command}` };
}

function hasSeveralDefaults({ facts }: { facts: ClaimFacts }): Omit<SourceProblem, 'state'> {
  const driver = provisionerOf(facts.claim, found(facts.storageClass));
  const defaults = (found(facts.snapshotClasses) ?? [])
    .filter((each) => each.driver === driver && each.metadata.annotations?.[defaultClassKey] === 'true')
    .map(({ metadata }) => metadata.name);
  const text = `cannot be taken: it names no VolumeSnapshotClass, and several of driver ${shortValue(driver)} are the default${defaults.length === 0 ? '' : ` (${nameList(defaults, maxNamed)})`}`;
  const command = shellCommand([
    'kubectl',
    'annotate',
    'volumesnapshotclass',
    defaults[0] ?? 'NAME',
    `${defaultClassKey}-`,
  ]);
  return { text, cure: `Let one of them be the default, and no other: ${command ?? ''}` };
}

/** The names of the classes for the driver of the claim. */
function ownClasses({ claim, storageClass, snapshotClasses }: ClaimFacts): string[] {
  const driver = provisionerOf(claim, found(storageClass));
  return (found(snapshotClasses) ?? []).filter((each) => each.driver === driver).map(({ metadata }) => metadata.name);
}
