/** What is done with each sidecar, step by step. */
/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { setTimeout as delay } from 'node:timers/promises';
import type { BoundClaim } from '../../test/support/admin.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { Results, StepResult } from './compare.ts';
import {
  bound,
  boundOrFailed,
  createClaim,
  createClass,
  createSecret,
  createSnapshot,
  deleteClaim,
  learnHandles,
  volumeGone,
  volumeIs,
  type ClaimSpec,
} from './objects.ts';
import {
  observeBound,
  observeCalls,
  observeCapacity,
  observeClaim,
  observeEvents,
  observeLeases,
  plain,
} from './observe.ts';
import { openTriedStage, type TriedStage, type TriedOptions } from './stage.ts';

type Step = (stage: TriedStage, made: Map<string, BoundClaim>) => Promise<StepResult>;

/** How long a volume of a deleted claim may be found after a restart, in milliseconds. */
const foundWithinMs = 20_000;

const steps: Record<string, Step> = {
  started: async (stage) => ({ ...(await observeLeases(stage)) }),
  'immediate binding': async (stage, made) => await makeVolume(stage, made, 'immediate', 'plain'),
  'late binding': async (stage, made) => await makeVolume(stage, made, 'late', 'late', { onNode: true }),
  'class with parameters': async (stage, made) => await makeVolume(stage, made, 'parameters', 'parameters'),
  'read-write-many': async (stage, made) =>
    await makeOrFail(stage, made, 'many', 'plain', { accessModes: ['ReadWriteMany'] }),
  block: async (stage, made) => await makeOrFail(stage, made, 'block', 'plain', { volumeMode: 'Block' }),
  clone: async (stage, made) =>
    await makeOrFail(stage, made, 'clone', 'plain', {
      dataSource: { kind: 'PersistentVolumeClaim', name: 'immediate' },
    }),
  snapshot: async (stage, made) => await restore(stage, made),
  'too large': async (stage, made) =>
    await makeOrFail(stage, made, 'large', 'plain', { size: stage.options.profile.tooLarge }),
  'unknown parameter': async (stage, made) => await makeOrFail(stage, made, 'unknown', 'unknown'),
  capacity: async (stage) => await publishedCapacity(stage),
  retain: async (stage, made) => await retained(stage, made),
  deleted: async (stage, made) => await deleted(stage, made.get('immediate')!),
  'deleted: class with parameters': async (stage, made) => await deleted(stage, made.get('parameters')!),
  killed: async (stage) => await killed(stage),
  'killed, claim deleted': async (stage) => await killedWithoutClaim(stage),
  stopped: async (stage) => await stopped(stage),
};

export interface StoryOptions extends TriedOptions {
  /** Called before each step. */
  at: (step: string) => void;
}

/** Tells the whole story with one sidecar on a cluster of its own; a step that fails is a result, too. */
export async function tellStory(options: StoryOptions): Promise<{ results: Results; stage: Pick<TriedStage, 'info'> }> {
  options.at('start');
  await using stage = await openTriedStage(options);
  await createSecret(stage);
  await createClasses(stage);
  await stage.start();
  const results = new Map<string, StepResult>();
  const made = new Map<string, BoundClaim>();
  for (const [name, step] of Object.entries(steps)) {
    if (!isPossible(name, stage)) continue;
    options.at(name);
    results.set(name, await told(stage, made, step));
  }
  learnHandles(stage);
  for (const [volume, result] of observeCalls(stage)) results.set(`calls: ${volume}`, result);
  return { results, stage };
}

function isPossible(step: string, { info: { capabilities } }: TriedStage): boolean {
  if (step === 'clone') return capabilities.has('CLONE_VOLUME');
  if (step === 'snapshot') return capabilities.has('CREATE_DELETE_SNAPSHOT');
  return step !== 'capacity' || capabilities.has('GET_CAPACITY');
}

async function told(stage: TriedStage, made: Map<string, BoundClaim>, step: Step): Promise<StepResult> {
  try {
    return await step(stage, made);
  } catch (error) {
    return { failed: plain(stage, error instanceof Error ? error.message : String(error)) };
  }
}

async function createClasses(stage: TriedStage): Promise<void> {
  const { furtherParameters: parameters, mountOptions = [] } = stage.options.profile;
  await createClass(stage, 'plain');
  await createClass(stage, 'late', { volumeBindingMode: 'WaitForFirstConsumer' });
  await createClass(stage, 'parameters', { parameters, mountOptions: [...mountOptions] });
  await createClass(stage, 'unknown', { parameters: { nonsense: 'yes' } });
  await createClass(stage, 'retain', { reclaimPolicy: 'Retain' });
}

async function makeVolume(
  stage: TriedStage,
  made: Map<string, BoundClaim>,
  claimName: string,
  className: string,
  spec: ClaimSpec = {},
): Promise<StepResult> {
  await createClaim(stage, claimName, className, spec);
  return await observeMade(stage, made, claimName);
}

async function observeMade(stage: TriedStage, made: Map<string, BoundClaim>, claimName: string): Promise<StepResult> {
  const pair = await bound(stage, claimName);
  made.set(claimName, pair);
  return await observeBound(stage, pair);
}

/** As `makeVolume`, for what not every driver does; a claim that has failed is deleted again. */
async function makeOrFail(
  stage: TriedStage,
  made: Map<string, BoundClaim>,
  claimName: string,
  className: string,
  spec: ClaimSpec = {},
): Promise<StepResult> {
  const claim = await createClaim(stage, claimName, className, spec);
  if ((await boundOrFailed(stage, claim)) === 'bound') return await observeMade(stage, made, claimName);
  const result = await observeClaim(stage, claim);
  await deleteClaim(stage, claimName);
  return result;
}

async function restore(stage: TriedStage, made: Map<string, BoundClaim>): Promise<StepResult> {
  await createSnapshot(stage, 'taken', made.get('immediate')!);
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'taken' };
  return await makeOrFail(stage, made, 'restored', 'plain', { dataSource });
}

/** Waits until each class has an object and the amounts stay for two of the polls. */
async function publishedCapacity(stage: TriedStage): Promise<StepResult> {
  let before = '';
  return await eventually(async () => {
    const now = await observeCapacity(stage);
    const [text, formerly] = [JSON.stringify(now), before];
    before = text;
    await delay(2500);
    if (text === formerly) return now;
    throw new Error('the amounts change');
  });
}

async function retained(stage: TriedStage, made: Map<string, BoundClaim>): Promise<StepResult> {
  // The finalizer of a new volume is removed a moment later, if its policy is Retain: the volume is compared after that.
  const { claim, events } = await makeVolume(stage, made, 'kept', 'retain');
  await deleteClaim(stage, 'kept');
  const volume = await volumeIs(stage, made.get('kept')!, 'Released');
  return { claim, events, released: plain(stage, volume) };
}

async function deleted(stage: TriedStage, pair: BoundClaim): Promise<StepResult> {
  await deleteClaim(stage, pair.claim.metadata?.name ?? '');
  await volumeGone(stage, pair);
  return { events: await observeEvents(stage, 'default', pair.volume.metadata?.uid ?? '') };
}

/** The sidecar is killed when the driver has made the volume and has not answered yet. */
async function killAmid(stage: TriedStage, claimName: string, meanwhile: () => Promise<void>): Promise<string> {
  const held = stage.csi.hold('CreateVolume');
  await createClaim(stage, claimName, 'plain');
  const { response } = await held.answered;
  await stage.sidecar().stop('SIGKILL');
  held.release();
  await meanwhile();
  const { volume_id: handle } = (response?.['volume'] ?? {}) as { volume_id?: string };
  learnHandles(stage);
  await stage.start();
  return handle ?? '';
}

async function killed(stage: TriedStage): Promise<StepResult> {
  await killAmid(stage, 'killed', () => Promise.resolve());
  return await observeBound(stage, await bound(stage, 'killed'));
}

async function killedWithoutClaim(stage: TriedStage): Promise<StepResult> {
  const handle = await killAmid(stage, 'gone', () => deleteClaim(stage, 'gone'));
  const isDeleted = (): boolean =>
    stage.csi.calls.some((call) => call.method === 'DeleteVolume' && call.request['volume_id'] === handle);
  const end = performance.now() + foundWithinMs;
  while (!isDeleted() && performance.now() < end) await delay(100);
  return { storage: isDeleted() ? 'deleted' : 'left behind' };
}

async function stopped(stage: TriedStage): Promise<StepResult> {
  const sidecar = stage.sidecar();
  const leases = await observeLeases(stage);
  await sidecar.stop('SIGTERM');
  const { items } = await stage.admin.coordination.listNamespacedLease({ namespace: stage.cluster.sidecarNamespace });
  const lease = items.find(({ metadata }) => !/-journal-\d+$/.test(metadata?.name ?? ''));
  return {
    ...leases,
    ending: await sidecar.ending(),
    lease: (lease?.spec?.holderIdentity ?? '') === '' ? 'released' : 'held',
  };
}
