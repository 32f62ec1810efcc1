/** The events by which controllers say that the API server refuses a claim or Pod that they create. */
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import type { QuantityText } from '../provision/objects.ts';
import { type ClusterEvent, namespaces, priorityClasses, resourceQuotas, serviceAccounts } from './cluster-objects.ts';
import type { ClusterReader, Reading } from './cluster-reader.ts';
import { type Recorded, recordedOf } from './provisioning-events.ts';

/** With which StatefulSets, ReplicaSets, Jobs and others record it. */
export const failedCreateReason = 'FailedCreate';
/** With which the controller of ephemeral volumes records it, on the Pod. */
export const failedBindingReason = 'FailedBinding';

/** A claim or Pod that was refused, as its newest event says. */
export interface RefusedObject {
  /** The object on which the event is: who creates the other. */
  owner: { kind: string; name: string };
  /** Undefined where the event does not name the Pod. */
  pod?: string | undefined;
  /** What the API server said, and how often. */
  refusal: Recorded;
}

/** Of a StatefulSet; newer versions write the first word with a capital. */
const setClaim = /^create claim (\S+) for pod (\S+) in statefulset \S+ failed error: (.*)$/is;
const setPod = /^create pod (\S+) in statefulset \S+ failed error: (.*)$/is;
/** Of an ephemeral volume. */
const ephemeral = /^ephemeral volume \S+: create PVC (\S+): (.*)$/s;
/** Of controllers that are not part of Kubernetes. */
const otherClaim = /persistentvolumeclaims? "([^"]+)" is (?:forbidden|invalid).*/is;
/** Of ReplicaSets and others, which do not name the Pod. */
const otherPod = /^error creating(?: job)?: (.*)$/is;

/** Why a claim was refused; undefined where no event names it. */
export function refusedClaim(events: readonly ClusterEvent[], claimName: string): RefusedObject | undefined {
  return newestOf(events, (text) => {
    const [, claim, pod, said] = setClaim.exec(text) ?? [];
    if (claim !== undefined) return claim === claimName ? { pod, said } : undefined;
    const [, ofPod, cause] = ephemeral.exec(text) ?? [];
    if (ofPod !== undefined) return ofPod === claimName ? { said: cause } : undefined;
    if (setPod.test(text)) return undefined; // beside that about the claim
    const [whole, other] = otherClaim.exec(text) ?? [];
    return other === claimName ? { said: whole } : undefined;
  });
}

/** Why a controller cannot create a Pod. @param owner - of which only events count. */
export function refusedPod(
  events: readonly ClusterEvent[],
  owner: { kind: string; name: string },
): RefusedObject | undefined {
  const own = events.filter(
    ({ involvedObject }) => involvedObject?.kind === owner.kind && involvedObject.name === owner.name,
  );
  return newestOf(own, (text) => {
    const [, pod, said] = setPod.exec(text) ?? [];
    if (pod !== undefined) return { pod, said };
    const [, cause] = otherPod.exec(text) ?? [];
    return cause === undefined ? undefined : { said: cause };
  });
}

/** The newest of the events that `read` understands, with the times of all that say the same of the same owner. */
function newestOf(
  events: readonly ClusterEvent[],
  read: (text: string) => { pod?: string | undefined; said?: string | undefined } | undefined,
): RefusedObject | undefined {
  const fitting = events.filter((event) => read(textOf(event)) !== undefined);
  const newest = recordedOf(fitting);
  if (newest === undefined) return undefined;
  const event = fitting.find((each) => textOf(each) === newest.text);
  const { pod, said = newest.text } = read(newest.text) ?? {};
  const { kind = '', name = '' } = event?.involvedObject ?? {};
  return { owner: { kind, name }, pod, refusal: { ...newest, text: said } };
}

function textOf({ message = '' }: ClusterEvent): string {
  return message.replace(/^\(combined from similar events\): /, '');
}

/** What a refusal names that has to be there, or has to have room. */
export interface NeededObject {
  resource: Resource;
  name: string;
  namespace?: string;
  /** Of a quota: how much of what. */
  requested?: ReadonlyMap<string, string>;
  /** Of a namespace: the level of PodSecurity that was violated. */
  level?: string;
}

export interface Needed extends NeededObject {
  reading: Reading<QuotaOrOther>;
}

export interface QuotaOrOther extends KubeObject {
  status?: { hard?: Record<string, QuantityText>; used?: Record<string, QuantityText> };
}

/** The quota that a refusal names, and how much of what was requested. */
function quotaOf(text: string): { name: string; requested: ReadonlyMap<string, string> } | undefined {
  const [, name, requested = ''] = /exceeded quota: (.+?), requested: (.+?), used: /.exec(text) ?? [];
  return name === undefined ? undefined : { name, requested: amounts(requested) };
}

/** `a=1,b=2Gi`, as the API server writes resources. */
export function amounts(text: string): Map<string, string> {
  return new Map(
    text.split(',').flatMap((each): [string, string][] => {
      const at = each.lastIndexOf('=');
      return at === -1 ? [] : [[each.slice(0, at), each.slice(at + 1)]];
    }),
  );
}

/** @param text - what the API server said. */
export function neededBy(text: string, namespace: string): NeededObject | undefined {
  const quota = quotaOf(text);
  if (quota !== undefined) return { resource: resourceQuotas, namespace, ...quota };
  const [, account] = /serviceaccount "([^"]+)" not found/.exec(text) ?? [];
  if (account !== undefined) return { resource: serviceAccounts, namespace, name: account };
  const [, priority] = /no PriorityClass with name (\S+) was found/.exec(text) ?? [];
  if (priority !== undefined) return { resource: priorityClasses, name: priority };
  const [, level] = /violates PodSecurity "([a-z]+):/.exec(text) ?? [];
  return level === undefined ? undefined : { resource: namespaces, name: namespace, level };
}

export async function readNeeded(needed: NeededObject, reader: ClusterReader): Promise<Needed> {
  return { ...needed, reading: await reader.get<QuotaOrOther>(needed.resource, needed) };
}
