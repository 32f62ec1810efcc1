/** Finalizers of claims and volumes: who sets them, and when they are removed. docs/why.md has the same table. */
import { shellCommand } from '../base/shell-word.ts';
import { volumeFinalizer } from '../provision/objects.ts';
import { lasting } from './texts.ts';

export const claimProtection = 'kubernetes.io/pvc-protection';
export const volumeProtection = 'kubernetes.io/pv-protection';
export const cloningProtection = 'provisioner.storage.kubernetes.io/cloning-protection';
export const snapshotProtection = 'snapshot.storage.kubernetes.io/pvc-as-source-protection';
/** With a name that is made of the driver's. */
export const attacherPrefix = 'external-attacher/';

/** How long kube-controller-manager takes at most to remove a finalizer of its own, unless it is away, in milliseconds. */
export const controllerLateMs = 2 * 60_000;

export const controllerManagerCure =
  'Check that kube-controller-manager runs: kubectl get lease kube-controller-manager --namespace kube-system';

/** Other controllers remove theirs within seconds, in milliseconds. */
const usualMs = 30_000;

interface KnownFinalizer {
  /** How it begins or ends. */
  prefix?: string;
  suffix?: string;
  owner: string;
  /** When its owner removes it, as a clause. */
  removed: string;
  /** What to do first; default: to see whether its owner runs. */
  look?: (object: HeldObject) => string;
}

const controllerManager = 'kube-controller-manager';
const snapshotController = 'the snapshot-controller';

/** The first that fits counts. */
export const knownFinalizers: readonly KnownFinalizer[] = [
  { prefix: claimProtection, owner: controllerManager, removed: 'once no Pod that has a node uses the claim' },
  { prefix: volumeProtection, owner: controllerManager, removed: 'once no claim is bound to the volume' },
  {
    prefix: 'kubernetes.io/pv-controller',
    owner: controllerManager,
    removed: 'once its plugin has deleted the storage',
  },
  { prefix: volumeFinalizer, owner: 'the provisioner', removed: 'once it has deleted the storage, or is to keep it' },
  {
    prefix: attacherPrefix,
    owner: "the driver's external-attacher",
    removed: 'once no VolumeAttachment names the volume',
  },
  { prefix: cloningProtection, owner: 'the provisioner', removed: 'once no clone of the claim is pending' },
  {
    prefix: snapshotProtection,
    owner: snapshotController,
    removed: 'once no snapshot of the claim is being taken',
    look: ({ namespace = '' }) =>
      `See which snapshots of the claim are not ready, and delete those that never will be: kubectl get volumesnapshots --namespace ${namespace}`,
  },
  { prefix: 'snapshot.storage.kubernetes.io/', owner: snapshotController, removed: 'once nothing needs the snapshot' },
  { suffix: '/populate-target-protection', owner: 'the volume populator', removed: 'once it has filled the volume' },
  {
    prefix: 'foregroundDeletion',
    owner: 'the garbage collector of kube-controller-manager',
    removed: 'once the objects are gone that name this one as their owner',
    look: () => 'See which objects name it in metadata.ownerReferences, and what holds those',
  },
];

function known(finalizer: string): KnownFinalizer | undefined {
  return knownFinalizers.find(
    ({ prefix = '', suffix = '' }) => finalizer.startsWith(prefix) && finalizer.endsWith(suffix),
  );
}

/** Who sets a finalizer; of one that is not known, what its name says. */
export function finalizerOwner(finalizer: string): string {
  const [domain = finalizer] = finalizer.split('/');
  return known(finalizer)?.owner ?? `a controller of ${domain}`;
}

/** Whose it is and when it goes, as in `F of kube-controller-manager, which removes it once no claim is bound to the volume`. */
export function finalizerText(finalizer: string): string {
  const removed = known(finalizer)?.removed;
  return `${finalizer} of ${finalizerOwner(finalizer)}${removed === undefined ? '' : `, which removes it ${removed}`}`;
}

/** An object as kubectl names it. */
export interface HeldObject {
  kind: 'pod' | 'pv' | 'pvc' | 'volumeattachment';
  name: string;
  namespace?: string | undefined;
  finalizers: readonly string[];
}

/** The command that removes one finalizer and no other, even if the list changes meanwhile. */
export function finalizerRemoval(object: HeldObject, finalizer: string): string {
  const { kind, name, namespace, finalizers } = object;
  const path = `/metadata/finalizers/${finalizers.indexOf(finalizer)}`;
  const patch = [
    { op: 'test', path, value: finalizer },
    { op: 'remove', path },
  ];
  const where = namespace === undefined ? [] : ['--namespace', namespace];
  const words = ['kubectl', 'patch', kind, name, ...where, '--type=json', '-p', JSON.stringify(patch)];
  return shellCommand(words) ?? `kubectl edit ${kind}`;
}

/** What to do about a finalizer that stays although nothing holds the object any more. */
export function finalizerCure(object: HeldObject, finalizer: string): string {
  const look = known(finalizer)?.look;
  if (look !== undefined) return look(object);
  const owner = finalizerOwner(finalizer);
  if (owner.includes(controllerManager)) return controllerManagerCure;
  return `Check that ${owner} runs, and see its log. If it is no longer installed, remove its finalizer: ${finalizerRemoval(object, finalizer)}`;
}

/** Whether somebody has to act, by how long ago the object was deleted. @param cure - what to do then. */
export function heldFor(agoMs: number, cure: string): { state: 'waiting' | 'stuck'; cure: string } {
  return agoMs < usualMs
    ? {
        state: 'waiting',
        cure: lasting('Usually nothing: it takes a moment', cure),
      }
    : { state: 'stuck', cure };
}
