/** Where archives go, and when they end. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { recordsFolder, sweepArchives } from '../../../provisioners/nfs-subdir/archives.ts';
import { PatientCalls } from '../../../provisioners/nfs-subdir/patient-calls.ts';
import type { StorageClass } from '../../../src/index.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { SubdirRig } from './rig.ts';

const archive = 'archived-ns-c-pvc-1';

describe('archives of nfs-subdir', () => {
  let rig: SubdirRig;
  beforeEach(async () => {
    rig = await SubdirRig.start();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  /** A volume that is archived as its class says. */
  const archived = async (parameters: Record<string, string>): Promise<StorageClass> => {
    const storageClass = rig.storageClass(parameters);
    const volume = await rig.provision(storageClass);
    rig.write('ns-c-pvc-1/file');
    await rig.delete(volume);
    return storageClass;
  };
  const sweep = async (): Promise<void> => {
    const nowMs = Date.now();
    while (Date.now() < nowMs + 5) await systemClock.sleep(1);
    const { share, volumesWith } = rig;
    const calls = new PatientCalls({ clock: systemClock, mountPoint: rig.mount });
    const parts = { share, calls, client: rig.api.client, volumesWith, clock: systemClock };
    await sweepArchives({ ...parts, logger: recordedLogger(rig.log) }, new AbortController().signal);
  };

  test('go to the folder of the class, which no volume reaches', async () => {
    await archived({ archiveDirectory: '.archived-x' });
    assert.deepEqual(rig.entries(), ['.archived-x']);
    assert.ok(rig.exists('.archived-x', archive, 'file'));
    for (const pathPattern of ['.archived-x', `.archived-x/${archive}`, './/.archived', '.Archived/a']) {
      await assert.rejects(rig.provision(rig.storageClass({ pathPattern })), /is reserved for archives$/);
    }
    await rig.provision(rig.storageClass({}), { namespace: 'archived-x' }, 'pvc-2');
    await archived({ archiveDirectory: '.archived-x' });
    assert.ok(rig.exists('.archived-x', `${archive}-pvc-1`, 'file'));
  });

  for (const [key, values] of [
    ['archiveDirectory', ['', 'archive', '.archived/a', '.archived.records', '..', '.share-identity']],
    ['archiveRetention', ['', '0', '0d', '-1h', '30', '1y', '30 d', '1.5d']],
  ] as const) {
    for (const value of values) {
      test(`are refused before a volume is made: ${key} ${JSON.stringify(value)}`, async () => {
        await assert.rejects(rig.provision(rig.storageClass({ [key]: value })), {
          state: 'finished',
          message: new RegExp(
            `^invalid value for parameter ${key}: ${JSON.stringify(value).replaceAll('.', '\\.')} must`,
          ),
        });
        assert.deepEqual(rig.entries(), []);
      });
    }
  }

  test('are removed when their time is over, and nothing is left of them', async () => {
    for (const parameters of [{}, { archiveDirectory: '.archived' }]) {
      await archived({ ...parameters, archiveRetention: '1ms' });
      await sweep();
      assert.ok(!rig.exists(archive) && !rig.exists('.archived', archive));
      assert.ok(!rig.exists(recordsFolder, 'pvc-1.json'));
    }
  });

  test('stay while their time is not over', async () => {
    await archived({ archiveRetention: '36500d' });
    await sweep();
    assert.equal(rig.read(`${archive}/file`), 'data');
  });

  test('of a class without a retention stay, and so does what only has such a name', async () => {
    await archived({});
    mkdirSync(rig.path('archived-by-hand'));
    await sweep();
    assert.deepEqual(rig.entries(), ['archived-by-hand', archive]);
  });

  for (const [what, change] of [
    ['whose class is gone', (made: StorageClass) => rig.deleteClass(made.metadata.name)],
    [
      'whose class has no retention any more',
      (made: StorageClass) => rig.storageClass({}, { metadata: made.metadata }),
    ],
    [
      'in whose place is another directory',
      () => {
        renameSync(rig.path(archive), rig.path('aside'));
        rig.write(`${archive}/file`);
      },
    ],
    ['that a volume has', () => rig.volume(`/exp/${archive}`, 'class', 'restored')],
    ['in which a volume lies', () => rig.volume(`/exp/${archive}/below`, 'class', 'restored')],
    ['whose record is damaged', () => writeFileSync(rig.path(recordsFolder, 'pvc-1.json'), '{"volume":')],
  ] as const) {
    test(`stay that are old and ${what}`, async () => {
      change(await archived({ archiveRetention: '1ms' }));
      await sweep();
      assert.equal(rig.read(`${archive}/file`), 'data');
    });
  }
});
