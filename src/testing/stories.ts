/** What the suite does with a provisioner, story by story. Each ends with nothing left: no claim, no volume, no storage. */
import { type PersistentVolume, persistentVolumes } from '../index.ts';
import { classNames, type Settled, type StoryBench } from './bench.ts';
import type { KillMoment } from './conformance-options.ts';
import { creationSteps, deletionSteps, revocationSteps, type Step } from './steps.ts';
import type { TestClaim } from './test-claim.ts';

/** One story, with a title that says what holds. */
export interface Story {
  title: string;
  run(bench: StoryBench): Promise<void>;
}

/** All stories that the options ask for. */
export function storiesOf(options: Settled): Story[] {
  const { recorded = true, leaderElection = false } = options;
  const isMeant = ({ isOfRecord }: Step): boolean => recorded || !isOfRecord;
  const creation = Object.values(creationSteps).filter(isMeant);
  return [
    { title: 'a claim becomes a volume, and both go', run: undisturbed },
    ...creation.map((step) => keptStory(step, options)),
    ...(recorded ? creation.map((step) => deletedStory(step, options)) : []),
    ...Object.values(deletionSteps).map((step) => deletionStory(step, options)),
    ...momentsOf(options).map(momentStory),
    ...(recorded ? momentsOf(options).map(deletedMomentStory) : []),
    ...(recorded ? Object.values(revocationSteps).map((step) => revocationStory(step, options)) : []),
    retainedStory(),
    ...(recorded ? [recreatedStory(), sharedStory()] : []),
    ...(leaderElection ? frozenStories({ recorded }) : []),
  ];
}

async function undisturbed(bench: StoryBench): Promise<void> {
  await bench.start();
  const claim = bench.claim();
  await dataIsKept(bench, await bench.bound(claim));
  await removed(bench, claim);
}

function keptStory(step: Step, { kills = 2 }: Settled): Story {
  return {
    title: `killed ${step.title}, the claim gets one volume`,
    run: async (bench) => {
      const claim = bench.claim();
      await killedAt(bench, { step, claim, kills });
      await bench.start();
      await dataIsKept(bench, await bench.bound(claim));
      await removed(bench, claim);
    },
  };
}

function deletedStory(step: Step, { kills = 2 }: Settled): Story {
  return {
    title: `killed ${step.title}, nothing is left of a claim that is deleted meanwhile`,
    run: async (bench) => {
      const claim = bench.claim();
      await killedAt(bench, { step, claim, kills });
      await claim.delete();
      await bench.start();
      await bench.passTime();
      await bench.finish();
    },
  };
}

function deletionStory(step: Step, { kills = 2 }: Settled): Story {
  return {
    title: `killed ${step.title}, the deletion is finished`,
    run: async (bench) => {
      await bench.start();
      const claim = bench.claim();
      const volume = await bench.bound(claim);
      const gone = (signal: AbortSignal): Promise<void> => bench.sandbox.volume(volume.metadata.name).gone({ signal });
      const stop = (): ReturnType<Step['stop']> => step.stop({ uid: '' });
      const isKilled = bench.killAt(stop());
      await claim.delete();
      await isKilled;
      for (let kill = 1; kill < kills; kill++) {
        await bench.start();
        if (!(await bench.killAt(stop(), gone))) await bench.kill();
      }
      await bench.start();
      await bench.gone(volume);
      await bench.passTime();
      await bench.finish();
    },
  };
}

/** Where storage shows or goes, and what the author has named. */
function momentsOf(options: Settled): KillMoment[] {
  const exists: KillMoment['isReached'] = async (place) => (await options.listStorage(place)).length > 0;
  return [
    { title: 'as soon as there is storage', during: 'fulfil', isReached: exists },
    { title: 'as soon as the storage is gone', during: 'delete', isReached: async (place) => !(await exists(place)) },
    ...(options.moments ?? []),
  ];
}

function momentStory(moment: KillMoment): Story {
  const { title, during } = moment;
  const outcome = during === 'fulfil' ? 'the claim gets one volume' : 'the deletion is finished';
  return {
    title: `killed ${title}, ${outcome}`,
    run: async (bench) => {
      const claim = bench.claim();
      if (during === 'fulfil') {
        await killedWhileFulfilled(bench, moment, claim);
      } else {
        await bench.start();
        await bench.bound(claim);
        const isKilled = bench.killOnce(() => moment.isReached(bench.place), deletionSteps.deleted.stop({ uid: '' }));
        await claim.delete();
        await isKilled;
      }
      await bench.start();
      if (during === 'fulfil') await dataIsKept(bench, await bench.bound(claim));
      await removed(bench, claim);
    },
  };
}

/** The same moments with a claim that is deleted before it has a volume: part of its storage exists, or part of it is revoked. */
function deletedMomentStory(moment: KillMoment): Story {
  const { title, during } = moment;
  const outcome = during === 'fulfil' ? 'a claim that is deleted meanwhile' : 'a deleted claim';
  return {
    title: `killed ${title}, nothing is left of ${outcome}`,
    run: async (bench) => {
      const claim = bench.claim();
      if (during === 'fulfil') {
        await killedWhileFulfilled(bench, moment, claim);
        await claim.delete();
      } else {
        const uid = await killedAt(bench, { step: creationSteps.fulfilled, claim, kills: 1 });
        await claim.delete();
        await bench.start();
        await bench.killOnce(() => moment.isReached(bench.place), revocationSteps.revoked.stop({ uid }));
      }
      await bench.start();
      await bench.passTime();
      await bench.revoked();
      await bench.finish();
    },
  };
}

async function killedWhileFulfilled(bench: StoryBench, moment: KillMoment, claim: TestClaim): Promise<void> {
  await claim.created();
  await bench.start();
  await bench.killOnce(() => moment.isReached(bench.place), creationSteps.fulfilled.stop({ uid: '' }));
}

function revocationStory(step: Step, { kills = 2 }: Settled): Story {
  return {
    title: `killed ${step.title}, nothing is left of a deleted claim`,
    run: async (bench) => {
      const claim = bench.claim();
      const uid = await killedAt(bench, { step: creationSteps.fulfilled, claim, kills: 1 });
      await claim.delete();
      const settled = (): Promise<void> => bench.balanced();
      for (let kill = 0; kill < kills; kill++) {
        await bench.start();
        if (!(await bench.killAt(step.stop({ uid }), kill === 0 ? undefined : settled))) await bench.kill();
      }
      await bench.start();
      await bench.passTime();
      await bench.revoked();
      await bench.finish();
    },
  };
}

/** A volume that was saved, while nobody knows of it, is kept with its claim gone where its class says so. */
function retainedStory(): Story {
  return {
    title: `killed ${creationSteps.saved.title}, a volume to be retained keeps its storage`,
    run: async (bench) => {
      const claim = bench.claim(classNames.retain);
      await killedAt(bench, { step: creationSteps.saved, claim, kills: 1 });
      const volume = await bench.bound(claim);
      await bench.writeData(volume);
      await claim.delete();
      await bench.start();
      await bench.passTime();
      await stillThere(bench, volume);
      const body = { spec: { persistentVolumeReclaimPolicy: 'Delete' } };
      await bench.sandbox.client.patch(persistentVolumes, volume.metadata, { type: 'merge', body });
      await bench.gone(volume);
      await bench.finish();
    },
  };
}

function recreatedStory(): Story {
  const step = creationSteps.fulfilled;
  return {
    title: `killed ${step.title}, a claim that is deleted and created again gets storage of its own`,
    run: async (bench) => {
      const first = bench.claim();
      await killedAt(bench, { step, claim: first, kills: 1 });
      const { spec } = await first.created();
      await first.delete();
      await first.gone();
      const claim = bench.sandbox.claim({ name: first.name, spec });
      await claim.created();
      await bench.start();
      const volume = await bench.bound(claim);
      await bench.writeData(volume);
      await bench.passTime();
      await bench.balanced();
      await bench.checkData(volume);
      await removed(bench, claim);
    },
  };
}

/** An administrator has made a second PersistentVolume for storage of the first. */
function sharedStory(): Story {
  return {
    title: 'storage that a second PersistentVolume has outlives the first one',
    run: async (bench) => {
      await bench.start();
      const claim = bench.claim();
      const volume = await bench.bound(claim);
      await bench.writeData(volume);
      const second = secondOf(volume);
      await bench.sandbox.client.create(persistentVolumes, second);
      await claim.delete();
      await bench.passTime();
      await stillThere(bench, volume); // the second one has the same
      await bench.sandbox.client.delete(persistentVolumes, second.metadata);
      await bench.gone(volume);
    },
  };
}

function secondOf({ metadata, spec }: PersistentVolume): PersistentVolume {
  const { claimRef: _claim, ...rest } = spec;
  const { annotations = {} } = metadata;
  return {
    metadata: { name: `${metadata.name}-second`, annotations },
    spec: { ...rest, persistentVolumeReclaimPolicy: 'Retain', storageClassName: 'by-hand' },
  };
}

/** The process that goes on after its lease has expired must not disturb what its successor has done. */
function frozenStories({ recorded }: { recorded: boolean }): Story[] {
  const { fulfilled, saved } = creationSteps;
  return [
    ...[fulfilled, saved].map(frozenStory),
    ...(recorded ? [fulfilled, saved].map(frozenDeletedStory) : []),
    frozenDeletionStory(deletionSteps.deleted),
  ];
}

function frozenStory(step: Step): Story {
  return {
    title: `frozen ${step.title}, until its lease has expired, the claim gets one volume`,
    run: async (bench) => {
      const claim = await frozenAt(bench, step);
      await bench.start();
      const volume = await bench.bound(claim);
      await bench.writeData(volume);
      await thawed(bench);
      await stillThere(bench, volume);
      await removed(bench, claim);
    },
  };
}

function frozenDeletedStory(step: Step): Story {
  return {
    title: `frozen ${step.title}, until its lease has expired, nothing is left of a claim that is deleted meanwhile`,
    run: async (bench) => {
      const claim = await frozenAt(bench, step);
      await claim.delete();
      await bench.start();
      await bench.balanced();
      await thawed(bench);
      await bench.finish();
    },
  };
}

function frozenDeletionStory(step: Step): Story {
  return {
    title: `frozen ${step.title}, until its lease has expired, the deletion is finished`,
    run: async (bench) => {
      await bench.start();
      const claim = bench.claim();
      const volume = await bench.bound(claim);
      const isFrozen = bench.freezeAt(step.stop({ uid: '' }));
      await claim.delete();
      await isFrozen;
      await bench.start();
      await bench.gone(volume);
      await thawed(bench);
      await bench.finish();
    },
  };
}

async function frozenAt(bench: StoryBench, step: Step): Promise<TestClaim> {
  const claim = bench.claim();
  const { metadata } = await claim.created();
  await bench.start();
  await bench.freezeAt(step.stop({ uid: metadata.uid ?? '' }));
  return claim;
}

/** The successor has served a claim before, so the lease has expired. */
async function thawed(bench: StoryBench): Promise<void> {
  await bench.passTime();
  bench.thaw();
  await bench.passTime();
}

/** Kills processes at a step of the claim's creation. The last one is dead then. @returns the claim's UID. */
async function killedAt(
  bench: StoryBench,
  { step, claim, kills }: { step: Step; claim: TestClaim; kills: number },
): Promise<string> {
  const { metadata } = await claim.created();
  const uid = metadata.uid ?? '';
  for (let kill = 0; kill < kills; kill++) {
    await bench.start();
    const unless = async (signal: AbortSignal): Promise<unknown> => await claim.bound({ signal });
    const isKilled = await bench.killAt(
      step.stop({ uid }),
      kill === 0 && step === creationSteps.closing ? undefined : unless,
    );
    if (isKilled) continue;
    if (kill === 0) bench.refuse(`the claim is Bound, but the provisioner never reached the step: ${step.title}`);
    await bench.kill();
  }
  return uid;
}

async function dataIsKept(bench: StoryBench, volume: PersistentVolume): Promise<void> {
  await bench.writeData(volume);
  await bench.passTime();
  await stillThere(bench, volume);
  await bench.balanced();
}

async function stillThere(bench: StoryBench, volume: PersistentVolume): Promise<void> {
  const name = bench.storageOf(volume);
  if (!(await bench.storage()).includes(name)) {
    const { name: volumeName } = volume.metadata;
    bench.refuse(`loss: the storage ${JSON.stringify(name)} of the PersistentVolume ${volumeName} is gone`);
  }
  await bench.checkData(volume);
}

/** Deletes the claim; in the end nothing is left. */
async function removed(bench: StoryBench, claim: TestClaim): Promise<void> {
  const volume = await claim.current();
  await claim.delete();
  await claim.gone();
  const name = volume?.spec.volumeName;
  if (name !== undefined) await bench.gone({ metadata: { name }, spec: {} });
  await bench.finish();
}
