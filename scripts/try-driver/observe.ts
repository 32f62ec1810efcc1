/** What is looked at after each step, in the form in which it is compared. */
/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { setTimeout as delay } from 'node:timers/promises';
import type { CoreV1Event, V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { type BoundClaim, eventsOf } from '../../test/support/admin.ts';
import type { StepResult } from './compare.ts';
import type { CsiCall } from './csi-proxy.ts';
import { normalised, normalisedText } from './normalise.ts';
import { namespace, type TriedStage } from './stage.ts';

const eventsWithinMs = 15_000;
/** Calls that are made now and then, and by each side as it needs them; what they lead to is compared. */
const background = new Set([
  'Probe',
  'GetPluginInfo',
  'GetPluginCapabilities',
  'ControllerGetCapabilities',
  'NodeGetInfo',
  'GetCapacity',
]);

/** The claim and its PersistentVolume, with the events about both. */
export async function observeBound(stage: TriedStage, { claim, volume }: BoundClaim): Promise<StepResult> {
  await successReported(stage, claim);
  return { volume: plain(stage, volume), ...(await observeClaim(stage, claim)) };
}

/** Events are sent beside the work: with a rate limit they come later. One that does not come is a result, too. */
async function successReported(stage: TriedStage, { metadata }: V1PersistentVolumeClaim): Promise<void> {
  const end = performance.now() + eventsWithinMs;
  while (performance.now() < end) {
    const events = await eventsOf(stage.admin, namespace, metadata?.uid ?? '');
    if (events.some(({ reason }) => reason === 'ProvisioningSucceeded')) return;
    await delay(50);
  }
}

export async function observeClaim(stage: TriedStage, { metadata }: V1PersistentVolumeClaim): Promise<StepResult> {
  const { name = '', uid = '' } = metadata ?? {};
  const { status, ...claim } = await stage.admin.core.readNamespacedPersistentVolumeClaim({ name, namespace });
  return {
    claim: plain(stage, { ...claim, phase: status?.phase }),
    events: await observeEvents(stage, namespace, uid),
  };
}

/** Events of the sidecar: by text, for their number depends on time. */
export async function observeEvents(stage: TriedStage, where: string, uid: string): Promise<Record<string, unknown>> {
  const events = (await eventsOf(stage.admin, where, uid)).filter((event) => isFromSidecar(stage, event));
  return Object.fromEntries(
    events.map(({ type, reason, message, source, involvedObject }) => [
      normalisedText(`${type ?? ''} ${reason ?? ''}: ${message ?? ''}`, stage.names),
      normalised({ component: source?.component, kind: involvedObject.kind }, stage.names),
    ]),
  );
}

function isFromSidecar({ info }: TriedStage, { source, reportingComponent }: CoreV1Event): boolean {
  return (source?.component ?? reportingComponent ?? '').startsWith(info.name);
}

/**
 * Calls by the volume that they are about, whenever they were made: what was asked and answered, repeats once, and how often
 * each method succeeded.
 */
export function observeCalls(stage: TriedStage): Map<string, StepResult> {
  const calls = stage.csi.calls.filter(({ method }) => !background.has(method));
  const byVolume = Map.groupBy(calls, ({ request: { name, volume_id: id } }) =>
    volumeOf(normalised(name ?? id, stage.names)),
  );
  return new Map(
    [...byVolume].map(([volume, own]) => [volume, { requests: distinct(stage, own), counts: counts(own) }]),
  );
}

function volumeOf(about: unknown): string {
  return typeof about === 'string' ? about.replace('<handle of', '<volume of') : 'no volume';
}

function distinct(stage: TriedStage, calls: readonly CsiCall[]): unknown[] {
  const texts = calls.map((call) => JSON.stringify(normalised(withoutAnswer(call), stage.names)));
  return [...new Set(texts)].map((text) => JSON.parse(text) as unknown);
}

function counts(calls: readonly CsiCall[]): Record<string, number> {
  const result: Record<string, number> = {};
  // A failing call is repeated for as long as the step lasts, so that its number says nothing.
  for (const { method, code } of calls) if (code === 'OK') result[method] = (result[method] ?? 0) + 1;
  return result;
}

function withoutAnswer({ response: _, ...call }: CsiCall): Partial<CsiCall> {
  return call;
}

/** Leases in the sidecar's namespace, by name. */
export async function observeLeases(stage: TriedStage): Promise<StepResult> {
  const { items } = await stage.admin.coordination.listNamespacedLease({ namespace: stage.cluster.sidecarNamespace });
  const byName = items.map(({ metadata, spec }) => [
    normalisedText(metadata?.name ?? '', stage.names),
    plain(stage, {
      labels: metadata?.labels,
      holder: spec?.holderIdentity,
      seconds: spec?.leaseDurationSeconds,
    }),
  ]);
  return { leases: Object.fromEntries(byName) as unknown };
}

/** CSIStorageCapacity objects, by class and segment. */
export async function observeCapacity(stage: TriedStage): Promise<StepResult> {
  const { items } = await stage.admin.storage.listCSIStorageCapacityForAllNamespaces();
  const byPlace = items.map(({ metadata, storageClassName, nodeTopology, capacity, maximumVolumeSize }) => [
    `${storageClassName} ${JSON.stringify(nodeTopology?.matchLabels ?? {})}`,
    plain(stage, {
      namespace: metadata?.namespace,
      labels: metadata?.labels,
      owners: metadata?.ownerReferences,
      capacity,
      maximumVolumeSize,
    }),
  ]);
  return { objects: Object.fromEntries(byPlace) as unknown };
}

/** Through JSON, so that models and plain objects are alike. */
export function plain(stage: TriedStage, value: unknown): unknown {
  return normalised(JSON.parse(JSON.stringify(value)), stage.names);
}
