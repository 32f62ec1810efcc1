/** Plans that the controller records: made, fulfilled and fulfilled again, whatever is gone by then. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { CsiProvisioner } from '../../../src/csi/csi-provisioner.ts';
import { cloningProtectionFinalizer } from '../../../src/csi/sources/finalizers.ts';
import type { PersistentVolumeClaim } from '../../../src/provision/objects.ts';
import { type FulfilContext, isRecoverable } from '../../../src/provision/recoverable.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { DriverFailure, type RecordedCall } from '../../support/fakes/recording-driver.ts';
import { base64, makeClaim, Rig, uid } from '../../support/csi-rig.ts';
import { makePlan, makePlanned, secretPath, sourcePath, startFullRig, storedPlan } from '../../support/full-plan.ts';

const { signal } = new AbortController();

function first(more: Partial<FulfilContext> = {}): FulfilContext {
  const beforeDelete = () => Promise.reject(new Error('nothing is to be deleted'));
  return { mayExist: false, beforeDelete, signal, ...more };
}
const again: FulfilContext = first({ mayExist: true });

/** As it was on the wire: fields and map entries in their order. */
const onWire = (call: RecordedCall | undefined): string => JSON.stringify(call?.request);

describe('CsiProvisioner, a plan', () => {
  test('is what the controller may record: the provisioner is recoverable', async () => {
    await using rig = await startFullRig();
    assert.ok(isRecoverable(rig.provisioner));
  });

  test('is plain data that survives being stored, holds no secret, and costs the driver no call', async () => {
    await using rig = await startFullRig();
    const plan = await makePlan(rig);
    assert.deepEqual(storedPlan(plan), plan);
    assert.doesNotMatch(JSON.stringify(plan), /hush|aHVzaA/);
    assert.deepEqual(rig.driver.calls, []);
    assert.deepEqual(
      rig.api.log.filter((line) => !line.startsWith('GET ')),
      [],
    );
  });

  test('needs the secret to be there, with the text and state of an attempt', async () => {
    await using rig = await startFullRig();
    rig.api.remove(secretPath);
    await assert.rejects(makePlan(rig), {
      name: 'ProvisionError',
      state: 'no-change',
      message: 'error getting secret s in namespace ns: secrets "s" not found',
    });
  });

  test('is refused for a claim of another provisioner', async () => {
    await using rig = await startFullRig();
    const foreign = makeClaim({}, { annotations: {} });
    await assert.rejects(rig.provisioner.plan(rig.options(foreign), { signal }), { name: 'IgnoredError' });
  });

  test('shares long lists of the topology with the next plan', async () => {
    const requisite = Array.from({ length: 20 }, (_, zone) => ({ segments: { zone: String(zone) } }));
    const topology = {
      requirements: () => ({ requisite: structuredClone(requisite), preferred: structuredClone(requisite) }),
    };
    await using rig = await startFullRig({ settings: { topology } });
    const [one, two] = [await makePlan(rig), await makePlan(rig)];
    assert.deepEqual(one.topology, { requisite, first: 0 });
    assert.equal(one.topology.requisite, two.topology?.requisite);
  });
});

describe('CsiProvisioner, fulfilling a plan', () => {
  test('sends the same bytes again when it was stored, and claim, class, node and source are gone', async () => {
    await using rig = await startFullRig();
    const planned = await makePlanned(rig);
    const { plan } = planned;
    const volume = await rig.provisioner.fulfil(plan, first({ planned }));
    rig.api.remove(sourcePath);
    rig.api.remove('/api/v1/persistentvolumes/pv-src');
    rig.api.remove('/apis/storage.k8s.io/v1/volumeattributesclasses/gold');
    rig.claims.delete('ns1/src');
    const before = rig.api.log.length;
    const topology = { requirements: () => assert.fail('the nodes are not looked at') };
    const restarted = new CsiProvisioner({ ...rig.settings, topology, volumeNamePrefix: 'other' });
    assert.deepEqual(await restarted.fulfil(storedPlan(plan), again), volume);
    const [sent, repeated] = rig.driver.callsOf('CreateVolume');
    assert.equal(onWire(repeated), onWire(sent));
    assert.deepEqual(rig.api.log.slice(before), [`GET ${secretPath}`], 'the source is not looked up');
  });

  test('reads a secret once for plan and first attempt, and again for each further one', async () => {
    await using rig = await startFullRig();
    const reads = () => rig.api.log.filter((line) => line === `GET ${secretPath}`).length;
    const planned = await makePlanned(rig);
    const { plan } = planned;
    await rig.provisioner.fulfil(plan, first({ planned }));
    assert.equal(reads(), 1);
    rig.api.put(secretPath, { metadata: { name: 's', namespace: 'ns' }, data: { user: base64('rotated') } });
    await rig.provisioner.fulfil(plan, { ...again, planned });
    assert.equal(reads(), 2);
    assert.deepEqual(rig.driver.callsOf('CreateVolume')[1]?.request['secrets'], { user: 'rotated' });
  });

  test('does not use a secret that was read long ago', async () => {
    const clock = new ManualClock();
    await using rig = await startFullRig({ settings: { clock } });
    const planned = await makePlanned(rig);
    const { plan } = planned;
    await clock.advance(2001);
    rig.api.put(secretPath, { metadata: { name: 's', namespace: 'ns' }, data: { user: base64('rotated') } });
    await rig.provisioner.fulfil(plan, first({ planned }));
    assert.deepEqual(rig.createRequest['secrets'], { user: 'rotated' });
  });

  test('fails without change while the secret is gone: it may come back', async () => {
    await using rig = await startFullRig();
    const plan = storedPlan(await makePlan(rig));
    rig.api.remove(secretPath);
    await assert.rejects(rig.provisioner.fulfil(plan, again), {
      state: 'no-change',
      afterUnclear: 'nothing',
      message: 'error getting secret s in namespace ns: secrets "s" not found',
    });
    assert.deepEqual(rig.driver.callsOf('CreateVolume'), []);
  });

  test('a permit that is refused directly before the call means that nothing was sent', async () => {
    await using rig = await startFullRig();
    const planned = await makePlanned(rig);
    const { plan } = planned;
    const permit = { isValid: false, renewed: () => Promise.reject(new Error('the lease is lost')) };
    await assert.rejects(rig.provisioner.fulfil(plan, first({ planned, permit })), {
      name: 'ProvisionError',
      state: 'no-change',
      message: 'the lease is lost',
    });
    assert.deepEqual(rig.driver.callsOf('CreateVolume'), []);
  });

  test('a source that cannot be protected ends the first attempt before the driver is called', async () => {
    await using rig = await startFullRig();
    const planned = await makePlanned(rig);
    const { plan } = planned;
    rig.api.fail({ method: 'PUT', path: sourcePath, code: 403, reason: 'Forbidden', message: 'not for you' });
    await assert.rejects(rig.provisioner.fulfil(plan, first({ planned })), {
      state: 'no-change',
      message: 'not for you',
    });
    assert.deepEqual(rig.driver.callsOf('CreateVolume'), []);
  });

  test('another process protects the source that the first one may have left unprotected, once', async () => {
    await using rig = await startFullRig();
    const plan = storedPlan(await makePlan(rig));
    const restarted = new CsiProvisioner(rig.settings);
    await restarted.fulfil(plan, again);
    const source = rig.api.get(sourcePath);
    assert.deepEqual(source?.metadata['finalizers'], [cloningProtectionFinalizer]);
    rig.claims.set(source as unknown as PersistentVolumeClaim);
    const before = rig.api.log.length;
    await restarted.fulfil(plan, again);
    assert.deepEqual(rig.api.log.slice(before), [`GET ${secretPath}`]);
  });

  for (const [what, change] of [
    ['is gone', (rig: Rig) => void rig.claims.delete('ns1/src')],
    ['is gone, which the cache does not show,', (rig: Rig) => rig.api.remove(sourcePath)],
    ['was replaced by another of the same name', (rig: Rig) => changeSource(rig, { uid: 'uid-other' })],
    [
      'is being deleted',
      (rig: Rig) => changeSource(rig, { uid: 'uid-src', deletionTimestamp: '2026-01-01T00:00:00Z' }),
    ],
    [
      'may not be changed',
      (rig: Rig) => rig.api.fail({ method: 'PUT', path: sourcePath, code: 403, reason: 'Forbidden', message: 'no' }),
    ],
  ] as const) {
    test(`a source that ${what} does not stop another process, and is not changed`, async () => {
      await using rig = await startFullRig();
      const plan = storedPlan(await makePlan(rig));
      change(rig);
      const volume = await new CsiProvisioner(rig.settings).fulfil(plan, again);
      assert.equal(volume.spec.csi?.volumeHandle, 'vol-1');
      assert.equal(rig.api.get(sourcePath)?.metadata['finalizers'], undefined);
    });
  }

  test('a source under deletion does not stop a repeat', async () => {
    await using rig = await startFullRig();
    const planned = await makePlanned(rig);
    const { plan } = planned;
    rig.driver.next('CreateVolume', new DriverFailure(status.DEADLINE_EXCEEDED, 'slow'));
    await assert.rejects(rig.provisioner.fulfil(plan, first({ planned })), { state: 'in-background' });
    const source = rig.api.get(sourcePath)!;
    rig.api.put(sourcePath, { ...source, metadata: { ...source.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    assert.equal((await rig.provisioner.fulfil(plan, { ...again, planned })).spec.csi?.volumeHandle, 'vol-1');
  });
});

function changeSource(rig: Rig, metadata: object): void {
  const source = { ...rig.api.get(sourcePath), metadata: { name: 'src', namespace: 'ns1', ...metadata } };
  rig.claims.set(rig.api.put(sourcePath, source) as unknown as PersistentVolumeClaim);
}

describe('CsiProvisioner, an unfit volume of a plan', () => {
  const tooSmall = { volume: { volume_id: 'small', capacity_bytes: '1' } };
  const problem = 'created volume capacity 1 less than requested capacity 5368709120';

  test('is deleted once the controller knows', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', tooSmall);
    const { plan } = await rig.provisioner.plan(rig.options(), { signal });
    const announced: string[] = [];
    const beforeDelete = (handle: string): Promise<void> => {
      assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
      announced.push(handle);
      return Promise.resolve();
    };
    await assert.rejects(rig.provisioner.fulfil(plan, first({ beforeDelete })), {
      state: 'in-background',
      message: problem,
    });
    assert.deepEqual(announced, ['small']);
    assert.deepEqual(
      rig.driver.callsOf('DeleteVolume').map(({ request }) => request),
      [{ volume_id: 'small' }],
    );
  });

  test('stays when the controller refuses, whose error passes as it is', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', tooSmall);
    const refusal = new Error('a volume holds it');
    const { plan } = await rig.provisioner.plan(rig.options(), { signal });
    const beforeDelete = () => Promise.reject(refusal);
    await assert.rejects(
      rig.provisioner.fulfil(plan, first({ beforeDelete })),
      (error) => error === refusal, // not wrapped
    );
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });

  test('is not deleted by another call when the controller refuses it meanwhile', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', tooSmall);
    rig.driver.next('DeleteVolume', new DriverFailure(status.INTERNAL, 'busy'));
    const refusal = new Error('a volume holds it by now');
    const { plan } = await rig.provisioner.plan(rig.options(), { signal });
    let looks = 0;
    const beforeDelete = () => (++looks === 1 ? Promise.resolve() : Promise.reject(refusal));
    await assert.rejects(rig.provisioner.fulfil(plan, first({ beforeDelete })), (error) => error === refusal);
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 1);
  });

  test('is orphaned when it has no id: nothing is deleted by an empty one', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', { volume: { volume_id: '', capacity_bytes: '1' } });
    const { plan } = await rig.provisioner.plan(rig.options(), { signal });
    await assert.rejects(rig.provisioner.fulfil(plan, first()), {
      state: 'in-background',
      message: `${problem}. Cleanup of volume pvc-${uid} failed, volume is orphaned: the driver gave it no id`,
    });
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });
});
