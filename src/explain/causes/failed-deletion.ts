/** A failed attempt to delete the storage of a volume: what the driver or the API server says, and what else needs the storage. */
import { nameList } from '../../base/name-list.ts';
import { shellCommand } from '../../base/shell-word.ts';
import { found } from '../cluster-reader.ts';
import { driverLogText } from '../driver-log.ts';
import type { Holding } from '../explanation.ts';
import { failuresText, type Recorded } from '../provisioning-events.ts';
import { cureText, type LastingCure, quotedError, readPart } from '../texts.ts';
import { stillNeeded, type VolumeFacts } from '../volume-facts-reader.ts';
import type { Cause, TextPattern } from './cause.ts';
import {
  absentError,
  driverAway,
  helperError,
  looseError,
  networkWords,
  openElsewhere,
  storageErrors,
  storageTroubles,
  unavailable,
} from './storage-words.ts';
import { requestMeaning } from './failure.ts';

/** Snapshots in a message: more are counted. */
const maxNamed = 5;
/** A deletion that takes longer needs somebody, in milliseconds. */
const unfinishedMs = 10 * 60_000;

/** What holds a volume whose deletion has failed. */
export function failedDeletion(failed: Recorded, facts: VolumeFacts): Holding {
  const { volume, secret, nowMs, driverPod } = facts;
  const { cause, ...lasting } = deletionMeaning(failed.text, failed.cause);
  const error = quotedError(failed.text);
  const message = `Its deletion ${failuresText(failed, nowMs)}; it will be retried. Last error: ${error}`;
  const bySnapshots = snapshotsText(facts);
  if (cause === 'delete-error' && bySnapshots !== undefined) {
    return {
      state: 'stuck',
      cause,
      cure: bySnapshots.cure,
      message: `${bySnapshots.text} Its deletion ${failuresText(failed, nowMs)}; it will be retried. Last error: ${error}`,
    };
  }
  const goesOn = lasting.late !== undefined && nowMs - failed.sinceMs < unfinishedMs;
  const isUnattached =
    found(facts.attachments)?.length === 0 &&
    /\bin use\b|VolumeInUse|\b(?:still|currently|is) attached/i.test(failed.text);
  const cure =
    isUnattached && cause === 'delete-error'
      ? 'No VolumeAttachment names the volume, but the storage reports it as in use: find out there which machine, snapshot or clone uses it, and detach or delete that'
      : cureText(lasting, { isLate: !goesOn, log: driverLogText(driverPod) });
  if (secret === undefined || cause !== 'delete-error' || goesOn) {
    return { state: goesOn ? 'waiting' : 'stuck', cause, cure, message };
  }
  const { reference, reading } = secret;
  const name = `${reference.namespace}/${reference.name}`;
  if (reading.kind === 'missing') {
    return {
      ...{ state: 'stuck', cause: 'secret-missing' },
      message: `Secret ${name}, with which the driver is to delete the storage, does not exist, and the deletion ${failuresText(failed, nowMs)}. Last error: ${error}`,
      cure: `Create the Secret again, also its namespace if that is gone; or name another one with the same content: ${secretCommand(volume)}`,
    };
  }
  const seen = reading.kind === 'found' ? 'exists' : 'may have gone with its namespace';
  return {
    state: 'stuck',
    cause,
    message,
    cure: `The driver gets Secret ${name}, which ${seen}. ${cure}`,
  };
}

/** Which snapshots there are of the volume, and how they go; read where the driver says that it is needed. */
function snapshotsText({ taken }: VolumeFacts): { text: string; cure: string } | undefined {
  const contents = found(taken) ?? [];
  const [first] = contents;
  if (first === undefined) return undefined;
  const names = contents.map(({ metadata, spec }) => {
    const { namespace = '', name = '' } = spec?.volumeSnapshotRef ?? {};
    return `${namespace}/${name} (VolumeSnapshotContent ${metadata.name})`;
  });
  const kept = contents.filter(({ spec }) => spec?.deletionPolicy === 'Retain').map(({ metadata }) => metadata.name);
  const { namespace = '', name = '' } = first.spec?.volumeSnapshotRef ?? {};
  const command = shellCommand(['kubectl', 'delete', 'volumesnapshot', '-n', namespace, name]) ?? '';
  return {
    text: `The driver keeps the volume, of which there ${contents.length === 1 ? 'is a snapshot' : 'are snapshots'}: ${nameList(names, maxNamed)}.`,
    cure: `As long as somebody needs ${contents.length === 1 ? 'it' : 'them'}, nothing: snapshots are often backups. Otherwise delete ${contents.length === 1 ? 'it' : 'each of them'}, and the volume is deleted then${kept.length === 0 ? '' : ` (deletionPolicy Retain keeps the snapshot at the storage: set it to Delete first in ${nameList(kept, maxNamed)}; where the VolumeSnapshot is gone, delete its VolumeSnapshotContent)`}: ${command}`,
  };
}

function secretCommand({ metadata: { name } }: VolumeFacts['volume']): string {
  const key = 'volume.kubernetes.io/provisioner-deletion-secret';
  return `kubectl annotate pv ${name} --overwrite ${key}-namespace=NAMESPACE ${key}-name=NAME`;
}

/** What a failed attempt to delete the storage means. @param recorded - its cause, as the provisioner has noted it. */
export function deletionMeaning(error: string, recorded: string | undefined): LastingCure & { cause: Cause } {
  const text = readPart(error);
  const request = requestMeaning(text, { recorded });
  if (request !== undefined) return { cause: request.cause, cure: request.cure };
  const { cure = '', late, log, byWords } = deletionCures.find(({ pattern }) => pattern.test(text)) ?? {};
  return { cause: 'delete-error', cure, late, log, byWords };
}

const absentCure =
  'The driver does not find what the deletion needs, such as the directory of the volume, an account or a pool: see whether somebody has moved or removed it. If the storage is certainly gone, set the reclaim policy to Retain and delete the PersistentVolume';

/** By what the driver or the provisioner says of a deletion (CSI specification, "DeleteVolume Errors" and "Error Scheme"). */
const deletionCures: readonly TextPattern[] = [
  // of the provisioner itself, in words that storages have as well
  {
    pattern: /^error getting secret /,
    cure: 'See whether the Secret that the message names exists, and whether the provisioner may get it',
    log: true,
  },
  { pattern: /^persistentvolume \S+ is still attached to node /, cure: '', log: true },
  {
    pattern: /^failed to get secretreference for volume /,
    cure: 'Correct the secret parameters of the class: delete it and create it again; or name the Secret in the annotations volume.kubernetes.io/provisioner-deletion-secret-name and -namespace of the volume',
  },
  {
    pattern:
      /ScopeLocked|\bscope\(s\) are locked|(?:deletion|delete)[ -]?protect|termination protection|is protected (?:from|against)|\blegal hold\b|\bdeletion is protected|\(protected\b|\b(?:is|was) locked\b|has not expired|till expire|\bimmutab/i,
    cure: 'A lock or protection of the storage forbids the deletion: have it removed there; the deletion then continues. If the storage is to stay, set the reclaim policy to Retain and delete the PersistentVolume',
    log: true,
  },
  {
    pattern: stillNeeded,
    cure: 'The storage is still in use. See what hangs on it, such as snapshots and clones of the volume, or its last user, and delete that if nobody needs it',
  },
  driverAway,
  {
    pattern: /\b(?:snap)?mirror|replication (?:pair|relation|session)|relationships?\b/i,
    cure: 'The volume takes part in a mirror or replication at the storage: have its administrator end that; the deletion then continues',
    log: true,
  },
  {
    pattern: looseError(networkWords),
    cure: 'The driver does not reach the storage of the volume: check the address, DNS, network policies and firewalls. If that storage is gone for good, set the reclaim policy to Retain and delete the PersistentVolume',
    log: true,
    byWords: true,
  },
  ...storageErrors,
  { pattern: /code = NotFound /, cure: absentCure, log: true },
  {
    pattern: /code = (Unauthenticated|PermissionDenied) /,
    cure: "Check the credentials and permissions with which the driver uses the storage: in its Secret, or in the driver's own configuration",
  },
  {
    pattern: /code = InvalidArgument /,
    cure: 'The driver does not understand the volume: compare spec.csi.volumeHandle with what it expects, and see whether it needs a Secret',
  },
  {
    pattern: /code = (DeadlineExceeded|Aborted|Canceled) /,
    cure: 'Nothing yet: the driver may still be deleting it, and is called again',
    late: 'The storage does not respond to the driver in time, or an earlier call hangs in the driver: see why, and then restart its Pod',
    log: true,
  },
  {
    pattern: /code = Unimplemented |does not support /,
    cure: 'The driver cannot delete volumes: set the reclaim policy to Retain, then delete the storage and the PersistentVolume by hand',
  },
  {
    pattern: openElsewhere,
    cure: 'A machine still has the volume open: find it in the storage (of Ceph: rbd status POOL/IMAGE), and end what uses the volume there, or shut that machine off',
    log: true,
  },
  { pattern: absentError, cure: absentCure, log: true, byWords: true },
  ...storageTroubles,
  unavailable,
  helperError,
  { pattern: /(?:)/, cure: '', log: true },
];
