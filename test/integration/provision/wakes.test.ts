/** Each obstacle of a claim or a volume is taken away: the claim or volume is synced at once, as no pause ends here and no resync comes. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { type ClaimReason, claimWakes, type VolumeReason, volumeWakes } from '../../../src/provision/wakes.ts';
import { explainOwnClaim } from '../../../src/explain/explain-own-claim.ts';
import { IgnoredError, ProvisionError } from '../../../src/provision/provisioner.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { leftRecord, recoveryScene } from './recovery-scene.ts';
import { annotation, type ClaimSketch, resource, Rig, type RigOptions } from './rig.ts';

/** What holds the claim `ns/a`, and what ends that. */
interface Scenario {
  title: string;
  reason: ClaimReason;
  options?: RigOptions;
  claim?: ClaimSketch;
  /** Before the controller starts; the class `c1` and the claim are there. */
  hold: (rig: Rig, uid: string) => void;
  release: (rig: Rig, uid: string) => void;
}

const reference = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'ns', name: 'a' };
const removeClass = (rig: Rig): void => {
  rig.api.delete(resource.classes, { name: 'c1' });
};
const removeVolume = (rig: Rig, name: string): void => {
  rig.api.delete(resource.volumes, { name });
};
const infeasible = new ProvisionError('bad parameter', { state: 'finished', infeasible: true });
const failed = new ProvisionError('no such mount option', { state: 'finished' });

/** Whether a provisioner that refuses at first has changed its mind: it wakes the claim itself. */
function undecided(): { allowed: () => boolean; allow: () => void } {
  let isAllowed = false;
  const allow = (): void => {
    isAllowed = true;
  };
  return { allowed: () => isAllowed, allow };
}
const [block, qualified] = [undecided(), undecided()];

const scenarios: Scenario[] = [
  {
    title: 'its provisioner supports block volumes by now',
    reason: 'no-block',
    options: { methods: { supportsBlock: block.allowed } },
    claim: { spec: { volumeMode: 'Block' } },
    hold: () => undefined,
    release: (rig, uid) => {
      block.allow();
      rig.controller.wakeClaim(uid);
    },
  },
  {
    title: 'its provisioner can take it by now',
    reason: 'not-qualified',
    options: { methods: { shouldProvision: qualified.allowed } },
    hold: () => undefined,
    release: (rig, uid) => {
      qualified.allow();
      rig.controller.wakeClaim(uid);
    },
  },
  {
    title: 'its provisioner no longer ignores it',
    reason: 'ignored',
    hold: (rig) => rig.provisioner.provisionSteps.push(new IgnoredError('it is not mine')),
    release: (rig, uid) => rig.controller.wakeClaim(uid),
  },
  {
    title: 'a PersistentVolume of its name, which is nobody’s, is deleted',
    reason: 'volume-exists',
    hold: (rig, uid) => rig.addVolume(`pvc-${uid}`, 'Available'),
    release: (rig, uid) => removeVolume(rig, `pvc-${uid}`),
  },
  {
    title: 'a PersistentVolume of its name, which is of another driver, is deleted',
    reason: 'volume-exists',
    hold: (rig, uid) =>
      rig.addVolume(`pvc-${uid}`, 'Bound', { annotations: {}, spec: { csi: { driver: 'x', volumeHandle: 'h' } } }),
    release: (rig, uid) => removeVolume(rig, `pvc-${uid}`),
  },
  {
    title: 'the PersistentVolume of its name was for it, and is deleted before it is bound',
    reason: 'volume-exists',
    hold: (rig, uid) => rig.addVolume(`pvc-${uid}`, 'Available', { spec: { claimRef: { ...reference, uid } } }),
    release: (rig, uid) => removeVolume(rig, `pvc-${uid}`),
  },
  {
    title: 'a PersistentVolume of another name, which was for it, is deleted',
    reason: 'volume-unbound',
    hold: (rig, uid) => rig.addVolume('vol-1', 'Available', { spec: { claimRef: { ...reference, uid } } }),
    release: (rig) => removeVolume(rig, 'vol-1'),
  },
  {
    title: 'its class is created',
    reason: 'class-missing',
    hold: removeClass,
    release: (rig) => rig.addClass(),
  },
  {
    title: 'its class is recreated for its provisioner',
    reason: 'class-differs',
    hold: (rig) => {
      removeClass(rig);
      rig.addClass('c1', { provisioner: 'other' });
    },
    release: (rig) => {
      removeClass(rig);
      rig.addClass();
    },
  },
  {
    title: 'its class is recreated with immediate binding',
    reason: 'waits-for-node',
    hold: (rig) => {
      removeClass(rig);
      rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    },
    release: (rig) => {
      removeClass(rig);
      rig.addClass('c1', { volumeBindingMode: 'Immediate' });
    },
  },
  {
    title: 'a node is selected for it',
    reason: 'waits-for-node',
    hold: (rig) => {
      removeClass(rig);
      rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    },
    release: (rig) =>
      rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv', [annotation.node]: 'n' } }),
  },
  {
    title: 'its class is recreated after the driver has called its parameters infeasible',
    reason: 'infeasible',
    hold: (rig) => rig.provisioner.provisionSteps.push(infeasible),
    release: (rig) => {
      removeClass(rig);
      rig.addClass();
    },
  },
  {
    title: 'the mount options of its class are edited after a failure',
    reason: 'finished',
    hold: (rig) => rig.provisioner.provisionSteps.push(failed),
    release: (rig) => {
      const storageClass = structuredClone(rig.api.get(resource.classes, { name: 'c1' }))!;
      rig.api.update(resource.classes, { ...storageClass, mountOptions: ['ro'] });
    },
  },
  {
    title: 'it is handed to this provisioner',
    reason: 'other-provisioner',
    hold: (rig) => rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'other' } }),
    release: (rig) => rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv' } }),
  },
  {
    title: 'it is handed to a provisioner at all',
    reason: 'not-requested',
    hold: (rig) => rig.changeClaim('a', { annotations: {} }),
    release: (rig) => rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv' } }),
  },
];

describe('a claim without a volume is tried again at once when', () => {
  for (const { title, reason, options, claim, hold, release } of scenarios) {
    test(title, async () => {
      const clock = new ManualClock();
      await using rig = await Rig.prepare({ clock, ...options });
      rig.addClass();
      const { uid } = rig.addClaim('a', claim).metadata;
      hold(rig, uid);
      await rig.start();
      await rig.settle(); // whatever the start itself brings has come
      const calls = rig.provisioner.provisions.length;
      assert.ok(calls <= 1);
      release(rig, uid);
      await rig.until('the volume', () => rig.volumes.some(({ spec }) => spec.claimRef?.uid === uid));
      assert.equal(rig.provisioner.provisions.length, calls + 1, reason);
    });
  }
});

describe('a claim with a record is tried again at once when', () => {
  const claim = (uid: string) => ({ ...reference, uid });

  for (const { title, phase, claimRef } of [
    { title: 'the released PersistentVolume of its name is deleted', phase: 'Released', claimRef: claim },
    {
      title: 'the PersistentVolume of its name, which is for another one, is deleted',
      phase: 'Bound',
      claimRef: () => claim('other'),
    },
  ]) {
    test(title, async () => {
      const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
      await using rig = scene.rig;
      rig.addVolume(scene.name, phase, { spec: { claimRef: claimRef(scene.uid) } });
      await rig.start();
      await rig.settle();
      assert.deepEqual(scene.backend.fulfils, []);
      removeVolume(rig, scene.name);
      await rig.until('the call', () => scene.backend.fulfils.length === 1);
    });
  }

  test('the record of another one whose volume has the same name is discarded', async () => {
    const scene = await recoveryScene({
      found: (uid) => {
        const { claim: left, volume, ...record } = leftRecord('other');
        return [
          {
            record: { ...record, claim: { ...left, name: 'b' }, volume: { ...volume, name: `pvc-${uid}` } },
            owner: 'foreign',
          },
        ];
      },
    });
    await using rig = scene.rig;
    await rig.start();
    await rig.until('the wait', () => rig.events.some(({ message }) => message.startsWith('Waiting: ')));
    await rig.settle();
    assert.deepEqual(scene.backend.fulfils, []);
    assert.deepEqual(rig.metrics.totals, {}, 'nothing has failed');
    scene.journal.discard('other');
    await rig.until('the volume', () => rig.volume(scene.name));
  });
});

describe('a volume that is to be deleted is synced at once when', () => {
  const attached = undecided();
  for (const { title, options, hold, release } of [
    {
      title: 'the provisioner allows it',
      options: { methods: { shouldDelete: attached.allowed } },
      hold: () => undefined,
      release: (rig: Rig): void => {
        attached.allow();
        rig.controller.wakeVolume('v');
      },
    },
    {
      title: 'it changes, and another instance no longer has it',
      options: {},
      hold: (rig: Rig): void => void rig.provisioner.deleteSteps.push(new IgnoredError('it is not of this node')),
      release: (rig: Rig): void => rig.touchVolume('v'),
    },
    {
      title: 'the backend is back after a failure',
      options: {},
      hold: (rig: Rig): void => void rig.provisioner.deleteSteps.push(new Error('away')),
      release: (rig: Rig): void => rig.controller.retryFailed(),
    },
  ]) {
    test(title, async () => {
      const clock = new ManualClock();
      await using rig = await Rig.prepare({ clock, ...options });
      rig.addVolume('v', 'Released');
      hold(rig);
      await rig.start();
      const calls = rig.provisioner.deletions.length;
      release(rig);
      await clock.advance(1000); // the spread of `retryFailed`
      await rig.until('the deletion', () => rig.volume('v') === undefined);
      assert.equal(rig.provisioner.deletions.length, calls + 1);
    });
  }
});

test('a claim whose attempt has stopped is not called due: what it waits for is named', async () => {
  const clock = new ManualClock();
  await using rig = await Rig.prepare({ clock, controller: { keepLastErrors: true } });
  rig.addClass();
  rig.addClaim('a', { spec: { volumeMode: 'Block' } });
  await rig.start();
  await clock.advance(600_000);
  const waiting = rig.controller.status.waitingClaim('ns/a');
  assert.ok(waiting);
  const { message } = explainOwnClaim(waiting, { nowMs: clock.wallMs() });
  assert.match(message, /; the next attempt comes once the provisioner supports block volumes\. /);
});

/** Reasons whose end another test shows. */
const elsewhere: Partial<Record<ClaimReason | VolumeReason, { file: string; title: string }>> = {
  bound: { file: 'start-and-stop.test.ts', title: 'changes of a bound pair that nobody reads wake nobody' },
  served: { file: 'recovery-work.test.ts', title: 'is not saved any more once another process works on its record' },
  'claim-gone': {
    file: 'recovery-claims.test.ts',
    title: 'that is deleted while it waits for the record is never asked for',
  },
  'node-changed': { file: 'recovery-claims.test.ts', title: 'as another node was selected, and then the former one' },
  'node-removed': { file: 'claim-failures.test.ts', title: 'the node is taken off the claim, whole and conditional' },
  abandoned: { file: 'recovery-work.test.ts', title: 'is not saved any more once another process works on its record' },
  draining: { file: 'drained-journal.test.ts', title: 'a new claim waits, says so once, and is served when that ends' },
  'other-record': { file: 'intent-journal/other-provisioner.test.ts', title: 'another provisioner' },
  'foreign-record': { file: 'recovery-found.test.ts', title: 'is left to it where it deletes' },
  saving: { file: 'recovery-work.test.ts', title: 'as its name was taken while it waited in the background' },
  'other-process': {
    file: 'recovery-found.test.ts',
    title: 'of a claim that is gone is not touched before it is ours',
  },
  'late-save': {
    file: 'recovery-found.test.ts',
    title: 'such as where the PersistentVolume may still be created',
  },
  proof: { file: 'recovery-history.test.ts', title: 'the version of a record that another process has left' },
  'in-background': { file: 'claim-failures.test.ts', title: 'an attempt that goes on in the background is repeated' },
  'no-change': { file: 'claim-failures.test.ts', title: 'gets the claims that failed meanwhile within a second' },
  reschedule: { file: 'claim-failures.test.ts', title: 'the node is taken off the claim, whole and conditional' },
  'earlier-call': {
    file: 'recovery-late-calls.test.ts',
    title: 'is reclaimed once a call that was given up must have ended',
  },
  'shared-storage': {
    file: 'volume/shared-storage.test.ts',
    title: 'waits for the next such volume once the first is gone',
  },
  'other-source': { file: 'volume/other-source.test.ts', title: 'to the provisioner whose storage it has' },
  'not-live': { file: 'volume-deletion.test.ts', title: 'a deletion is not repeated once the volume' },
};

test('each reason has a test that takes it away', async () => {
  const here = new Set<string>([
    ...scenarios.map(({ reason }) => reason),
    ...['volume-leaving', 'name-in-use', 'refused', 'ignored', 'retrying'], // above
  ]);
  const rows = Object.keys({ ...claimWakes, ...volumeWakes }) as (ClaimReason | VolumeReason)[];
  assert.deepEqual(
    rows.filter((reason) => !here.has(reason) && elsewhere[reason] === undefined),
    [],
  );
  for (const { file, title } of Object.values(elsewhere)) {
    const text = await readFile(path.join(import.meta.dirname, file), 'utf8');
    assert.ok(text.includes(title), `${file}: ${title}`);
  }
});
