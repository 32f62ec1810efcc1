/** The provisioner of the claim: whether the claim was handed to it, whether it works, and whether it is at work on the claim. */
import { nameList } from '../../base/name-list.ts';
import { nearestName } from '../../base/near-name.ts';
import { shellCommand } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import { requestedProvisioner } from '../../provision/claim-fields.ts';
import { electionWaitingReason, notReadyReason } from '../../provision/event-reasons.ts';
import { attempts, type FailedAttempt, withClassAge } from '../attempts.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import { callEndsWithinMs, driverLogText } from '../driver-log.ts';
import type { Finding, Holding } from '../explanation.ts';
import { controllerManagerCure } from '../known-finalizers.ts';
import { missingRight, rightCure } from '../missing-right.ts';
import { checkServing, isInTree, leaseCure, signOfLifeMs } from '../provisioner-facts.ts';
import { type Recorded, recordedOf } from '../provisioning-events.ts';
import { durationText, lastChangeMs, lasting } from '../texts.ts';
import { defineCause } from './cause.ts';

/** Drivers in a message: more are counted. */
const maxNamed = 5;

const cureOfOther = 'Usually kube-controller-manager corrects the annotation. Otherwise recreate the claim';

/** kube-controller-manager has not handed the claim to its provisioner (annotation `volume.kubernetes.io/storage-provisioner`). */
export const notHandedOver = defineCause({
  name: 'not-handed-over',
  failures: [{ pattern: /^StorageClass ".*" names provisioner ".*", and the claim asks for /, cure: cureOfOther }],
});

/** How long kube-controller-manager may take before it is suspect, in milliseconds. */
const handOverMs = 60_000;

export function checkHandOver(facts: ClaimFacts): Finding | FailedAttempt | undefined {
  const { claim, storageClass, events, nowMs } = facts;
  const ofClass = found(storageClass);
  const asked = requestedProvisioner(claim);
  const serving = ofClass?.provisioner ?? '';
  if (asked === undefined && isInTree(serving)) {
    // kube-controller-manager records a failure if it has no such plugin
    if (events?.kind === 'unreadable') return { state: 'unknown', detail: events.why };
    const { failed } = attempts(facts);
    if (failed !== undefined) return { failed };
  }
  if (asked === undefined) {
    const ageMs = nowMs - lastChangeMs(claim);
    const late = ageMs > handOverMs;
    return {
      state: late ? 'stuck' : 'waiting',
      cause: 'not-handed-over',
      message: `kube-controller-manager has not handed the claim to its provisioner (annotation volume.kubernetes.io/storage-provisioner), and the claim has been like this for ${durationText(ageMs)}.`,
      cure: late ? controllerManagerCure : lasting('Nothing yet', controllerManagerCure),
    };
  }
  if (serving !== '' && serving !== asked && !isInTree(serving)) {
    return {
      state: 'stuck',
      cause: 'not-handed-over',
      message: `The claim was handed to ${shortValue(asked)}, and its class now names ${serving}. Nothing is provisioned until both agree.`,
      cure: cureOfOther,
    };
  }
  return { state: 'ok', detail: `kube-controller-manager handed it to ${shortValue(asked)}` };
}

/** There is no sign of the provisioner, or Kubernetes has no such plugin. */
export const noProvisioner = defineCause({
  name: 'no-provisioner',
  failures: [
    {
      pattern: /^no volume plugin matched/,
      cure: 'Kubernetes has no such plugin, or no longer has it: recreate the class with the name of a CSI driver',
    },
  ],
});

/** Whether there is one, and whether it has a leader. */
export function checkProvisioner(facts: ClaimFacts): Finding | undefined {
  const { provisioner, events, nowMs } = facts;
  if (provisioner === undefined) return undefined;
  const { lastMs } = attempts(facts);
  const causes = { nobody: 'no-provisioner', away: 'no-leader' } as const;
  const finding = checkServing({ provisioner, nowMs, events, lastSignMs: lastMs, ...causes });
  return 'cause' in finding && finding.cause === 'no-provisioner' ? withDrivers(finding, facts) : finding;
}

/** Which drivers there are instead: one of them may be meant. */
function withDrivers(finding: Holding, { provisioner, storageClass }: ClaimFacts): Holding {
  const drivers = found(provisioner?.drivers) ?? [];
  const near = nearestName(provisioner?.name ?? '', drivers);
  const ofClass = found(storageClass)?.metadata.name;
  if (near === undefined || ofClass === undefined) {
    const names = nameList(drivers.toSorted(), maxNamed);
    return names === '' ? finding : { ...finding, message: `${finding.message} The cluster has the drivers ${names}.` };
  }
  const patch = JSON.stringify({ provisioner: near });
  const words = ['kubectl', 'patch', 'storageclass', ofClass, '--dry-run=client', '--type=merge', '-p', patch];
  const command = shellCommand([...words, '-o', 'yaml']);
  return {
    ...finding,
    message: `${finding.message} The cluster has the driver ${near}: the provisioner of StorageClass ${ofClass} may be misspelt.`,
    cure: `If ${near} is meant, recreate the class${command === undefined ? '' : `: ${command} | kubectl replace --force -f -`}`,
  };
}

/** Longer than a standby waits for a silent Lease of the usual durations, in milliseconds. */
const maxWaitMs = 2 * 60_000;

/** A standby waits until an earlier process with its identity is known to have ended: until then the Lease looks held. */
export function checkElectionWaits(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, leaseEvents, nowMs } = facts;
  const newest = (reason: string, type: string): Recorded | undefined =>
    recordedOf((found(leaseEvents?.events) ?? []).filter((event) => event.reason === reason && event.type === type));
  const waits = newest(electionWaitingReason, 'Normal');
  if (waits === undefined || nowMs - waits.atMs > maxWaitMs) return undefined;
  const ends = [newest(electionWaitingReason, 'Warning'), newest('LeaderElection', 'Normal')]; // the other one works, or has ended
  if (ends.some((end) => end !== undefined && end.atMs >= waits.atMs)) return undefined;
  return {
    state: 'waiting',
    cause: 'no-leader',
    message: `The provisioner ${provisionerOf(claim, found(storageClass))} may have no leader for ${durationText(nowMs - waits.sinceMs)}: ${waits.text}.`,
    cure: 'Wait: the standby takes the Lease over once nobody has renewed it for its duration',
  };
}

/** For a claim about which no provisioner has recorded an event. An expired Lease is reported by `checkProvisioner`. */
export function checkSeemsAway({ claim, provisioner, storageClass, nowMs }: ClaimFacts): Finding | undefined {
  const name = provisionerOf(claim, found(storageClass));
  const ageMs = nowMs - lastChangeMs(claim);
  const leads = (found(provisioner?.leases) ?? []).length > 0;
  if (ageMs <= signOfLifeMs || leads || isInTree(name) || provisioner?.leases.kind !== 'found') return undefined;
  return {
    state: 'stuck',
    cause: 'no-leader',
    presumes: true,
    message: `The provisioner ${shortValue(name)} seems to have no leader, or not to be running: it has no Lease, and has recorded no event about the claim, which was handed to it ${durationText(ageMs)} ago.`,
    cure: `Check that the Pods of the provisioner run (with --node-deployment: the one on the claim's node), and see what they log. ${leaseCure()}`,
  };
}

/** Where the leader cannot work yet, such as without the permission to list nodes. Without a full stop. */
export const notReadyCure =
  'Do what the message says; where a permission is missing, the log of the leader has the rule to add';

/** The event is repeated this often while it lasts, and some; in milliseconds. */
const repeatedWithinMs = 11 * 60_000;

function readyCure(text: string): string {
  const right = missingRight(text);
  return right === undefined ? notReadyCure : rightCure(right);
}

/** What the leader has recorded on its Lease; read only where nothing is recorded about the claim. */
export function checkReady(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, leaseEvents, nowMs, unreadiness } = facts;
  const name = provisionerOf(claim, found(storageClass));
  const held = { state: 'stuck', cause: 'not-ready' } as const;
  if (unreadiness !== undefined) {
    return {
      ...held,
      cure: readyCure(unreadiness),
      message: `The provisioner ${name} leads but is not ready: ${unreadiness}`,
    };
  }
  const own = (found(leaseEvents?.events) ?? []).filter(({ reason }) => reason === notReadyReason);
  const recorded = recordedOf(own);
  if (recorded === undefined || nowMs - recorded.atMs > repeatedWithinMs) return undefined;
  const leader = leaseEvents?.holder ?? '';
  return {
    ...held,
    cure: readyCure(recorded.text),
    message: `The provisioner ${name} leads (${leader}) but is not ready, for ${durationText(nowMs - recorded.sinceMs)}: ${recorded.text}`,
  };
}

/** In node deployment: no volume has come from the selected node yet. Its provisioner may be away, or slow. */
export const provisionerAway = defineCause({
  name: 'provisioner-away',
  waits: [
    {
      pattern: /^Waiting for node ".*", which was selected/,
      state: 'stuck',
      cure: "Check the driver's Pod on that node. If it is running, it may still be creating the volume: wait. If not, get it running, or recreate the claim",
    },
  ],
});

/** The provisioner is working on the claim, or about to. */
export const inProgress = defineCause({
  name: 'in-progress',
  waits: [
    {
      pattern: /^Waiting for another process: /,
      state: 'waiting',
      cure: 'Nothing to do about the claim; the other process of the provisioner finishes first, or is replaced after 30 seconds',
    },
    {
      pattern: /^Waiting for another provisioner: /,
      state: 'stuck',
      cure: 'Two provisioners share one intent journal: have the sidecar of the other one close its record, and give each its own driver name or namespace',
    },
    {
      pattern: /^Waiting for the end of a drain: /,
      state: 'waiting',
      cure: 'An operator is draining the intent journal, such as before another provisioner takes over; csi-provisioner journal drain --resume ends that',
    },
  ],
});

/** A working provisioner has started on a claim by then, in milliseconds. */
const beginsWithinMs = 2 * 60_000;
/** With very many claims before this one, in milliseconds. */
const queuedWithinMs = 10 * 60_000;

/** An attempt is under way. */
export function checkUnderWay(facts: ClaimFacts): Finding | undefined {
  const history = attempts(facts);
  const { started } = history;
  if (started === undefined) return undefined;
  const { nowMs } = facts;
  const hangs = nowMs - started.atMs > callEndsWithinMs;
  return withClassAge(facts, history, {
    state: hangs ? 'stuck' : 'waiting',
    cause: 'in-progress',
    presumes: nowMs - started.atMs > signOfLifeMs,
    message: `The driver has been creating the volume for ${durationText(nowMs - started.sinceMs)}, and no attempt has failed${hangs ? ', or ended' : ''}.`,
    cure: hangs
      ? `The driver, or the provisioner, hangs: see whether the storage responds. ${driverLogText(facts.driverPod)}`
      : `Nothing. An attempt ends, one way or the other, within the --timeout of the provisioner; if it takes longer than ${durationText(callEndsWithinMs)}, it hangs`,
  });
}

/** No attempt was begun. */
export function checkNotBegun({ claim, storageClass, provisioner, leader, nowMs }: ClaimFacts): Finding {
  const name = provisionerOf(claim, found(storageClass));
  const ageMs = nowMs - lastChangeMs(claim);
  const isLate = ageMs > beginsWithinMs;
  const isStuck = ageMs > queuedWithinMs;
  const [lease] = found(provisioner?.leases) ?? [];
  const holder = lease?.spec?.holderIdentity ?? '';
  const namespace = lease?.metadata.namespace ?? '';
  const whose = holder === '' ? '' : `, ${shortValue(holder)} in namespace ${namespace}`;
  const isNoPod = leader?.kind === 'missing';
  const cure = `See the log of the provisioner${whose}: it may be busy with other claims, lack the permission to record events, or hang`;
  return {
    state: isStuck ? 'stuck' : 'waiting',
    cause: 'in-progress',
    presumes: true,
    message: `The claim was handed to provisioner ${shortValue(name)}, which has not started on it ${isLate ? `in ${durationText(ageMs)}` : 'yet'}.${isLate && isNoPod ? ` Its leader ${shortValue(holder)} renews Lease ${namespace}/${lease?.metadata.name ?? ''}, but namespace ${namespace} has no Pod ${shortValue(holder)}.` : ''}`,
    cure: isLate
      ? `${cure}${isNoPod ? '. The leader is then a Pod with hostNetwork on a node of that name, or left over from an earlier installation: stop it, and another process acquires the Lease' : ''}`
      : lasting('Nothing yet: it starts within seconds, or once it is done with the claims before this one', cure),
  };
}
