/** A Pod uses the claim and is not scheduled. */
import type { Pod } from '../cluster-objects.ts';
import type { Holding } from '../explanation.ts';
import { durationText } from '../time-text.ts';
import { defineCause } from './cause.ts';
import { noRoomCure } from './no-capacity.ts';

export const podUnschedulable = defineCause({ name: 'pod-unschedulable' });

/** A running scheduler has said something about a Pod after this time, in milliseconds. */
const scheduledWithinMs = 2 * 60_000;
const usualScheduler = 'default-scheduler';

export function isForScheduler({ spec }: Pod): boolean {
  return (spec?.schedulingGates ?? []).length === 0 && (spec?.nodeName ?? '') === '';
}

/** Why the scheduler cannot place a Pod; undefined where it has not said so. */
export function refusalOf({ status }: Pod): string | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  return condition?.status === 'False' ? (condition.message ?? condition.reason ?? '') : undefined;
}

export function podFinding(pod: Pod, nowMs: number): Holding {
  const { name } = pod.metadata;
  const gates = pod.spec?.schedulingGates ?? [];
  if (gates.length > 0) {
    return {
      state: 'waiting',
      cause: 'pod-unschedulable',
      message: `Pod ${name} uses the claim and is held by scheduling gates: ${gates.map((gate) => gate.name).join(', ')}.`,
      cure: 'Wait for the controllers that set the gates to remove them',
    };
  }
  const node = pod.spec?.nodeName ?? '';
  if (node !== '') {
    return {
      state: 'stuck',
      cause: 'pod-unschedulable',
      message: `Pod ${name} uses the claim and sets spec.nodeName to ${node}, so it bypasses the scheduler, which would choose the node for the volume.`,
      cure: 'Recreate the Pod with a nodeSelector (kubernetes.io/hostname) instead of spec.nodeName',
    };
  }
  const refusal = refusalOf(pod);
  return refusal === undefined ? unseen(pod, nowMs) : unschedulable(pod, refusal);
}

/** The scheduler has said nothing about the Pod. */
function unseen({ metadata, spec }: Pod, nowMs: number): Holding {
  const { schedulerName = usualScheduler } = spec ?? {};
  const ageMs = nowMs - Date.parse(metadata.creationTimestamp ?? '');
  if (ageMs > scheduledWithinMs) {
    return {
      state: 'stuck',
      cause: 'pod-unschedulable',
      message: `Pod ${metadata.name} uses the claim, and no scheduler has reported anything about it for ${durationText(ageMs)}. Its scheduler is ${schedulerName}.`,
      cure: `Check that ${schedulerName} runs, and that spec.schedulerName of the Pod is right`,
    };
  }
  return {
    state: 'waiting',
    cause: 'waits-for-consumer',
    message: `Pod ${metadata.name} uses the claim, and the scheduler has not chosen a node for it yet.`,
    cure: 'Usually nothing: it takes a moment. If it stays like this, check that its scheduler runs',
  };
}

function unschedulable({ metadata, status }: Pod, refusal: string): Holding {
  const nominated = status?.nominatedNodeName ?? '';
  if (nominated !== '') {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      message: `Pod ${metadata.name} uses the claim, and the scheduler is making room for it on node ${nominated}: Pods of lower priority have to end first.`,
      cure: 'Nothing: it is scheduled once they have ended',
    };
  }
  const noRoom = refusal.includes('enough free storage');
  return {
    state: 'stuck',
    cause: noRoom ? 'no-capacity' : 'pod-unschedulable',
    message: `Pod ${metadata.name} uses the claim and cannot be scheduled. The scheduler: ${refusal}`,
    cure: noRoom
      ? noRoomCure
      : 'Make a node fit the Pod, as the message says; the volume is provisioned once a node is chosen',
  };
}
