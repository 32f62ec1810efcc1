/** The StorageClass of the claim: whether it exists, and whether its parameters are right. */
import { nearestName } from '../../base/near-name.ts';
import { className, requestedProvisioner } from '../../provision/claim-fields.ts';
import { betaStorageClassKey, type PersistentVolume, type PersistentVolumeClaim } from '../../provision/objects.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import {
  classesText,
  defaultClass,
  defaultClassKey,
  nearlyDefault,
  otherClassCure,
  recreationCommand,
} from '../other-classes.ts';
import { binderWords } from '../provisioning-events.ts';
import { nearVolume } from '../static-volumes.ts';
import { durationText, lastChangeMs, withCommand } from '../texts.ts';
import { defineCause } from './cause.ts';

/** The claim names no StorageClass, and none is the default. */
export const noClass = defineCause({
  name: 'no-class',
  waits: [
    {
      pattern: /^Waiting for a StorageClass: /,
      state: 'stuck',
      cure: 'Recreate the claim with a storageClassName',
    },
  ],
});

/** kube-controller-manager gives a claim the default class within this time, in milliseconds. */
const givenWithinMs = 60_000;

export function checkNamesClass(facts: ClaimFacts): Finding | undefined {
  const { claim, otherClasses, nowMs } = facts;
  const isNamed = claim.metadata.annotations?.[betaStorageClassKey] ?? claim.spec.storageClassName;
  if (isNamed !== undefined) return undefined;
  const held = { state: 'stuck', cause: 'no-class' } as const;
  const classes = found(otherClasses?.classes);
  if (classes === undefined) {
    return {
      ...held,
      message:
        'The claim names no StorageClass, and kube-controller-manager has given it none: the cluster has no default StorageClass.',
      cure: `Mark a class with the annotation ${defaultClassKey}=true, or recreate the claim with storageClassName`,
    };
  }
  const usual = defaultClass(classes);
  if (usual !== undefined) {
    const { name } = usual.metadata;
    const ageMs = nowMs - Math.max(lastChangeMs(claim), lastChangeMs(usual));
    if (ageMs <= givenWithinMs) {
      return {
        ...held,
        state: 'waiting',
        message: `The claim names no StorageClass yet: kube-controller-manager is about to give it the default one, ${name}.`,
        cure: 'Nothing: it takes less than a minute',
      };
    }
    const again = recreationCommand(claim, name);
    return {
      ...held,
      message: `The claim names no StorageClass, and kube-controller-manager has not given it the default one, ${name}, for ${durationText(ageMs)}.`,
      cure: `Check that kube-controller-manager runs; before Kubernetes 1.26 it does not do this. Or recreate the claim${again === undefined ? '' : `: ${again}`}`,
    };
  }
  const message = 'The claim names no StorageClass, and the cluster has no default one';
  const near = classes.find((each) => nearlyDefault(each) !== undefined);
  const volumes = near === undefined ? found(facts.staticVolumes?.volumes) : undefined;
  const fitting = nearVolume(claim, volumes ?? []);
  const marked = near ?? (classes.length === 1 ? classes[0] : undefined);
  const marking = withCommand(
    'Mark a class as the default one, which kube-controller-manager then gives to the claim',
    [
      ...[
        'kubectl',
        'annotate',
        'storageclass',
        marked?.metadata.name ?? 'NAME',
        `${defaultClassKey}=true`,
        '--overwrite',
      ],
    ],
  );
  return {
    ...held,
    message:
      near === undefined
        ? `${message}. ${classesText(classes)}.${fitting === undefined ? '' : ` PersistentVolume ${fitting.volume.metadata.name} would fit, except for its class ${fitting.volume.spec.storageClassName ?? ''}.`}`
        : `${message}: StorageClass ${near.metadata.name} has ${nearlyDefault(near) ?? ''}, and only the annotation ${defaultClassKey}: "true" counts.`,
    cure: fitting === undefined ? marking : `${marking}. ${ofVolume(claim, fitting.volume)}`,
  };
}

function ofVolume(claim: PersistentVolumeClaim, { metadata, spec }: PersistentVolume): string {
  const command = recreationCommand(claim, spec.storageClassName ?? '');
  return `Or, if PersistentVolume ${metadata.name} is meant, recreate the claim with its class${command === undefined ? '' : `: ${command}`}`;
}

/** What kube-controller-manager says of a class that may not be read here. */
export function checkUnreadClass({ claim, storageClass, events, nowMs }: ClaimFacts): Finding | undefined {
  if (storageClass?.kind !== 'unreadable' || requestedProvisioner(claim) !== undefined) return undefined;
  const missing = binderWords(events, ['ProvisioningFailed'], nowMs);
  if (missing?.includes(`"${className(claim)}" not found`) === true) {
    return { state: 'stuck', cause: 'class-not-found', message: missing, cure: missingCure };
  }
  const unused = binderWords(events, ['WaitForFirstConsumer'], nowMs);
  const used = binderWords(events, ['WaitForPodScheduled'], nowMs);
  if (used !== undefined) return { state: 'unknown', detail: `${storageClass.why}. ${used}`, ends: true };
  if (unused === undefined) return undefined;
  return {
    state: 'waiting',
    cause: 'waits-for-consumer',
    message: unused,
    cure: 'Nothing: the volume is provisioned once a Pod uses the claim',
  };
}

const missingCure = 'Create the class, or recreate the claim with another class';

/** The claim names a StorageClass that does not exist. */
export const classNotFound = defineCause({
  name: 'class-not-found',
  failures: [{ pattern: /^storageClass ".*" not found$/, cure: missingCure }], // in the log, while the event is not repeated
  waits: [{ pattern: /^Waiting for StorageClass /, state: 'stuck', cure: missingCure }],
});

export function checkClassExists({ claim, storageClass, otherClasses }: ClaimFacts): Finding | undefined {
  if (storageClass?.kind === 'unreadable') return { state: 'unknown', detail: storageClass.why };
  if (found(storageClass) !== undefined) return undefined;
  const name = className(claim);
  const message = `StorageClass ${name} does not exist.`;
  const held = { state: 'stuck', cause: 'class-not-found' } as const;
  const classes = found(otherClasses?.classes);
  if (classes === undefined) return { ...held, message, cure: missingCure };
  const near = nearestName(
    name,
    classes.map(({ metadata }) => metadata.name),
  );
  const meant = near ?? defaultClass(classes)?.metadata.name;
  const other = otherClassCure(claim, otherClasses ?? {}, meant);
  return {
    ...held,
    message:
      near === undefined
        ? `${message} ${classesText(classes)}.`
        : `${message} The cluster has ${near}: storageClassName may be misspelt.`,
    cure: other === undefined ? missingCure : `Create StorageClass ${name}, or ${other}`,
  };
}

/** A parameter of the class is wrong. */
export const classParameters = defineCause({
  name: 'class-parameters',
  failures: [
    {
      pattern: /^failed to strip CSI Parameters of prefixed keys: /,
      cure: 'Correct or remove this key, which no sidecar knows: delete the class and create it again',
    },
    {
      pattern: /^fstype specified in parameters with both /,
      cure: 'Keep csi.storage.k8s.io/fstype and leave out fstype: delete the class and create it again',
    },
  ],
});
