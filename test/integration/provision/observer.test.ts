import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ProvisionObserver } from '../../../src/provision/provision-controller-options.ts';
import { IgnoredError, ProvisionError } from '../../../src/provision/provisioner.ts';
import { recordedLogger, type LogLine } from '../../support/fakes/recorded-logger.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { Rig } from './rig.ts';

/** What an observer was called with, in words. */
class Seen implements Required<ProvisionObserver> {
  readonly calls: string[] = [];

  onProvisioned: Required<ProvisionObserver>['onProvisioned'] = (volume, { claim, volumeName }) => {
    assert.equal(volume.metadata.name, volumeName);
    this.calls.push(`provisioned ${claim.metadata.name}, for ${volume.spec.claimRef?.name}`);
  };

  onProvisionFailed: Required<ProvisionObserver>['onProvisionFailed'] = ({ state, message }, { storageClass }) => {
    this.calls.push(`failed ${state} ${message} of ${storageClass.metadata.name}`);
  };

  onDeleted: Required<ProvisionObserver>['onDeleted'] = ({ metadata: { name } }) => {
    this.calls.push(`deleted ${name}`);
  };
}

describe('an observer of the controller', () => {
  test('learns of a volume as it will be saved, before it is saved', async () => {
    const observer = new Seen();
    await using rig = await Rig.prepare({ controller: { observer } });
    let written: string[] = ['nobody called'];
    const { onProvisioned } = observer;
    observer.onProvisioned = (...args) => {
      written = rig.writes;
      onProvisioned(...args);
    };
    rig.addClass();
    rig.addClaim('a');
    await rig.start();
    await rig.stop();
    assert.deepEqual([observer.calls, written], [['provisioned a, for a'], []]);
  });

  for (const { title, error, want } of [
    {
      title: 'of a failed attempt, with its state',
      error: new ProvisionError('full', { state: 'in-background' }),
      want: ['failed in-background full of c1'],
    },
    {
      title: 'of any other exception as a failure that is final',
      error: new TypeError('bug'),
      want: ['failed finished bug of c1'],
    },
    { title: 'nothing of a claim that is ignored', error: new IgnoredError('not ours'), want: [] },
  ]) {
    test(`learns ${title}`, async () => {
      const observer = new Seen();
      await using rig = await Rig.prepare({ controller: { observer, failedProvisionThreshold: 1 } });
      rig.provisioner.otherwiseProvision = error;
      rig.addClass();
      rig.addClaim('a');
      await rig.start();
      await rig.stop();
      assert.deepEqual(observer.calls, want);
    });
  }

  for (const { title, error, want } of [
    { title: 'learns of deleted storage', error: undefined, want: ['deleted v'] },
    { title: 'learns nothing of a deletion that failed', error: new Error('still in use'), want: [] },
  ]) {
    test(title, async () => {
      const observer = new Seen();
      await using rig = await Rig.prepare({ controller: { observer, failedDeleteThreshold: 1 } });
      if (error !== undefined) rig.provisioner.otherwiseDelete = error;
      rig.addVolume('v', 'Released');
      await rig.start();
      await rig.stop();
      assert.deepEqual(observer.calls, want);
    });
  }

  test('learns that the storage of a volume was deleted which could not be saved, with its claim gone', async () => {
    const observer = new Seen();
    const clock = new ManualClock();
    await using rig = await Rig.prepare({ clock, controller: { observer } });
    rig.addClass();
    const { uid } = rig.addClaim('a', { finalizers: [] }).metadata;
    rig.refuse('create', 'persistentvolumes', { code: 422, reason: 'Invalid' });
    await rig.start();
    assert.deepEqual(observer.calls, ['provisioned a, for a']);
    rig.deleteClaim();
    await rig.until('the cache without the claim', () => rig.claimInCache('a') === undefined);
    await clock.advance(1000);
    await rig.until('the deletion', () => observer.calls.length === 2);
    await rig.stop();
    assert.deepEqual(observer.calls, ['provisioned a, for a', `deleted pvc-${uid}`]);
  });

  test('that throws is logged, and changes nothing', async () => {
    const lines: LogLine[] = [];
    const observer: ProvisionObserver = {
      onProvisioned: () => {
        throw new Error('oops');
      },
    };
    await using rig = await Rig.prepare({ controller: { observer, logger: recordedLogger(lines) } });
    rig.addClass();
    const { uid } = rig.addClaim('a').metadata;
    await rig.start();
    await rig.stop();
    assert.ok(rig.volume(`pvc-${uid}`));
    assert.deepEqual(
      lines.flatMap(({ level, message }) => (level === 'error' ? [message] : [])),
      ['An observer of the provision controller failed'],
    );
  });
});
