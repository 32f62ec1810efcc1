/** A Pod whose volumes are mounted, and whose containers do not run: what that has to do with the volume of a claim. */
import { shellCommand, shellWord } from '../../base/shell-word.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../provision/objects.ts';
import { claimsOf, type Container, type ContainerStatus, type Pod, waitingOf } from '../cluster-objects.ts';
import { quotedError, unlessSaid } from '../texts.ts';
import type { Hint } from './cause.ts';
import { describeCommand } from './holding-pods.ts';
import { nodeErrorCure } from './node-error.ts';

interface Where {
  claim: PersistentVolumeClaim;
  /** Undefined where it was not read. */
  volume: PersistentVolume | undefined;
}

/** Why a container of the Pod waits. */
export function containerHint(pod: Pod, node: string, where: Where): Hint | undefined {
  const [waits] = waitingOf(pod);
  if (waits === undefined) return undefined;
  if (waits.state?.waiting?.reason === 'CrashLoopBackOff') return crashHint({ pod, node, container: waits, ...where });
  const { reason = '', message = '' } = waits.state?.waiting ?? {};
  const mine = volumesOf(pod, where.claim);
  if (/subpath/i.test(message) && mine.some((volume) => message.includes(`volumeMount "${volume}"`))) {
    return {
      text: `does not start on node ${node}: the volume is mounted, and its container ${waits.name} cannot use a directory of it (${reason}: ${message}).`,
      cure: `Create the directory (subPath of the container) in the volume, or let root of node ${node} write there: with root_squash or a read-only export it cannot. The log of its kubelet has the error`,
    };
  }
  const { volumeName = '' } = where.claim.spec;
  if (volumeName !== '' && message.includes(`/${volumeName}/`)) {
    return {
      text: `cannot run its container ${waits.name} on node ${node}, which cannot use the volume (${reason}: ${quotedError(message)}).`,
      cure: nodeErrorCure(message, { node, isAttach: false, volume: where.volume }),
    };
  }
  return {
    text: `does not start on node ${node}, for a reason other than this claim: its container ${waits.name} waits (${reason}${message === '' ? '' : `: ${message}`}).`,
    cure: waitCure(pod, reason, message),
  };
}

function waitCure(pod: Pod, reason: string, message: string): string {
  if (message.includes('runAsNonRoot'))
    return `Set runAsUser in the securityContext to a user other than 0 (with fsGroup, so that it may write to its volumes), or use an image that names one: ${describeCommand(pod)}`;
  if (/(?:secret|configmap) "[^"]+" not found|couldn't find key/i.test(message))
    return `Create what the message names in the namespace of the Pod, or correct the Pod: ${describeCommand(pod)}`;
  if (reason !== 'ImagePullBackOff' && reason !== 'ErrImagePull') return `See why it waits: ${describeCommand(pod)}`;
  const secrets = (pod.spec?.imagePullSecrets ?? []).flatMap(({ name = '' }) => name || []);
  const { namespace = '' } = pod.metadata;
  const of =
    secrets.length === 0
      ? 'a Secret in imagePullSecrets, of which the Pod has none'
      : `its Secret ${secrets.join(' or ')}, which must be in namespace ${namespace} and be valid`;
  return `Correct the name of the image; for a private registry the Pod needs ${of}: ${describeCommand(pod)}`;
}

/** The names in the Pod of volumes with the claim. */
function volumesOf(pod: Pod, { metadata }: PersistentVolumeClaim): string[] {
  return claimsOf(pod).flatMap(({ name, volume }) => (name === metadata.name ? [volume] : []));
}

interface Crash extends Where {
  pod: Pod;
  node: string;
  container: ContainerStatus;
}

/** Words with which programs say that files fail them, and what to do. */
const fileCures: readonly { pattern: RegExp; cure: (crash: Crash) => string }[] = [
  {
    pattern: /permission denied|operation not permitted|not writable|EACCES|EPERM/i,
    cure: ({ pod }) => {
      const group = pod.spec?.securityContext?.fsGroup;
      const own =
        'the storage must allow that user itself (owner of the directory, root_squash, mount options uid and gid)';
      return group === undefined
        ? `Let the user of the container write to the volume: set securityContext.fsGroup of the Pod. If Kubernetes does not change owners there, as with NFS or SMB, ${own}`
        : `The fsGroup ${group} of the Pod does not let the user of the container write to the volume. If Kubernetes does not change owners there, as with NFS, SMB or fsGroupPolicy None in the CSIDriver, ${own}`;
    },
  },
  {
    pattern: /read-only file ?system|EROFS/i,
    cure: (crash) => {
      const { node, volume } = crash;
      const { mountOptions = [] } = (volume?.spec ?? {}) as { mountOptions?: string[] };
      if (mountOptions.includes('ro') || mountsOf(crash).some(({ readOnly }) => readOnly === true))
        return 'The volume is mounted read-only, by readOnly in the Pod or mountOptions of the PersistentVolume: change that';
      return `Check for readOnly of the claim in the Pod, readOnlyRootFilesystem, spec.csi.readOnly and a read-only export. Otherwise the kernel of node ${node} has made the volume read-only after storage errors (dmesg there): once these are fixed, delete the Pod, so that the volume is mounted again`;
    },
  },
  {
    pattern: /no space left on device|disk quota exceeded|ENOSPC|EDQUOT/i,
    cure: ({ claim: { metadata } }) =>
      `The volume is full: delete data, or, if its class allows expansion (allowVolumeExpansion), request more: kubectl edit pvc -n ${shellWord(metadata.namespace ?? '') ?? 'NAMESPACE'} ${metadata.name}`,
  },
  {
    pattern: /lost\+found|(?:directory|folder)\b.* (?:is )?not empty/i,
    cure: () =>
      'The program wants an empty directory, and the root of a file system has lost+found: let it use a directory below, by subPath in volumeMounts or a setting of its own (of PostgreSQL: PGDATA)',
  },
  {
    pattern: /input\/output error|EIO\b/i,
    cure: ({ node }) =>
      `The storage behind the volume fails: see the kernel log of node ${node} (dmesg), and the health of the volume in the storage system`,
  },
  {
    pattern: /stale (?:NFS )?file handle|transport endpoint is not connected|structure needs cleaning/i,
    cure: ({ container, node, volume }) => nodeErrorCure(saidLast(container), { node, isAttach: false, volume }),
  },
];

/** What a container wrote before its end, where it writes that to its termination log (`terminationMessagePolicy`). */
function saidLast({ lastState }: ContainerStatus): string {
  return lastState?.terminated?.message ?? '';
}

/** A runtime could not start the container at all, so that it has no log. */
const notRun = new Set(['ContainerCannotRun', 'StartError']);

/** It is started again and again. */
function crashHint(crash: Crash): Hint {
  const { pod, node, container } = crash;
  const { exitCode, reason = '' } = container.lastState?.terminated ?? {};
  const end = [...(exitCode === undefined ? [] : [`exit code ${exitCode}`]), ...(reason === '' ? [] : [reason])];
  const message = saidLast(container);
  const said = message.trim() === '' ? '' : ` Last message: ${quotedError(message)}`;
  const { namespace = '', name } = pod.metadata;
  const logs = shellCommand(['kubectl', 'logs', '-n', namespace, name, '-c', container.name, '--previous']) ?? '';
  if (notRun.has(reason)) {
    const isMine = message.includes(`/${crash.claim.spec.volumeName ?? ''}/`);
    return {
      text: `has its volumes on node ${node}, but its container ${container.name} cannot be started (${end.join(', ')}).${said}`,
      cure:
        /not a directory/i.test(message) && (isMine || /subpath/i.test(message))
          ? 'A file is to be mounted over a directory, or a directory over a file: what subPath names in the volume is created as a directory where it is missing. Put the file there, or mount a directory; for a single file, use a ConfigMap or Secret'
          : `Do what the message says: ${describeCommand(pod)}`,
    };
  }
  const known = isAboutVolume(crash) ? fileCures.find(({ pattern }) => pattern.test(message)) : undefined;
  return {
    text: `has its volumes on node ${node}, but its container ${container.name} exits each time it is started${end.length === 0 ? '' : ` (${end.join(', ')})`}.${said}`,
    cure: known === undefined ? `See why it ends: ${logs}` : `${unlessSaid(known.cure(crash))}. Its log: ${logs}`,
  };
}

/** Whether the container has the volume, and names no path outside of it. */
function isAboutVolume(crash: Crash): boolean {
  const paths = mountsOf(crash).map(({ mountPath }) => mountPath);
  const named = saidLast(crash.container).match(/(?<![\w.:/])\/[\w.-]+(?:\/[\w.-]*)*/g) ?? [];
  return paths.length > 0 && (named.length === 0 || named.some((each) => paths.some((path) => each.startsWith(path))));
}

/** Where the container has the volume. */
function mountsOf({ pod, container, claim }: Crash): NonNullable<Container['volumeMounts']> {
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const mine = volumesOf(pod, claim);
  return (all.find(({ name }) => name === container.name)?.volumeMounts ?? []).filter(({ name }) =>
    mine.includes(name),
  );
}
