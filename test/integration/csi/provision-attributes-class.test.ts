/** Volume attributes classes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { silentLogger } from '../../../src/base/logger.ts';
import {
  FoundAttributesClassApi,
  olderAttributesClassVersions,
  volumeAttributesClasses,
} from '../../../src/csi/volume-attributes-class.ts';
import { OptionalApi } from '../../../src/csi/optional-api.ts';
import type { KubeObject } from '../../../src/kube/kube-object.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import {
  assertFailed,
  assertNoCreate,
  driverName,
  makeClaim,
  makeClass,
  type Outcome,
  Rig,
  volumeOf,
} from '../../support/csi-rig.ts';

const group = '/apis/storage.k8s.io';
const path = `${group}/v1/volumeattributesclasses/v`;
const olderPath = `${group}/v1beta1/volumeattributesclasses/v`;
const controller = ['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'];
const claim = makeClaim({ volumeAttributesClassName: 'v' });

function putClass(rig: Rig, name = driverName, at = path): void {
  rig.api.put(at, { metadata: { name: 'v' }, driverName: name, parameters: { iops: '9' } });
}

describe('CsiProvisioner, volume attributes classes', () => {
  test('the parameters of the attributes class are sent beside those of the storage class', async () => {
    await using rig = await Rig.start({ controller });
    putClass(rig);
    const volume = volumeOf(await rig.provision(claim, makeClass({ iops: '1' })));
    assert.deepEqual(rig.createRequest['parameters'], { iops: '1' });
    assert.deepEqual(rig.createRequest['mutable_parameters'], { iops: '9' });
    assert.equal(volume.spec.volumeAttributesClassName, 'v');
  });

  test('the driver must be able to modify volumes', async () => {
    await using rig = await Rig.start();
    putClass(rig);
    const message =
      'CSI driver does not support VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported';
    assertFailed(await rig.provision(claim), 'finished', message);
    assertNoCreate(rig);
  });

  test('a missing class is an error in the words of the API', async () => {
    await using rig = await Rig.start({ controller });
    const outcome = await rig.provision(claim);
    assertFailed(outcome, 'no-change', 'not found');
    assert.equal(outcome.error?.message, 'volumeattributesclasses.storage.k8s.io "v" not found');
    assertNoCreate(rig);
  });

  test('a class of another driver is refused', async () => {
    await using rig = await Rig.start({ controller });
    putClass(rig, 'other');
    const message = `VAC v referenced in PVC is for driver other which does not match driver name ${driverName}`;
    assertFailed(await rig.provision(claim), 'finished', message);
    assertNoCreate(rig);
  });

  const ignored = [
    { name: 'the gate is off', gate: false, className: 'v' },
    { name: 'the name is empty', gate: true, className: '' },
  ];
  for (const { name, gate, className } of ignored) {
    test(`no attributes class is sent when ${name}`, async () => {
      const gates = { crossNamespaceVolumeDataSource: false, volumeAttributesClass: gate };
      await using rig = await Rig.start({ settings: { gates } });
      const volume = volumeOf(await rig.provision(makeClaim({ volumeAttributesClassName: className })));
      assert.equal(rig.createRequest['mutable_parameters'], undefined);
      assert.ok(!('volumeAttributesClassName' in volume.spec));
      assert.deepEqual(rig.api.requests, []);
      assert.deepEqual(rig.events, []);
    });
  }
});

/** A rig whose API server serves attributes classes in the given versions; `serve` changes them later. */
async function startServing(...versions: string[]) {
  const clock = new ManualClock();
  const rig = await Rig.start({
    controller,
    settings: {
      attributesClasses: {
        check: (signal) => api.check(signal),
        get isMissing() {
          return api.isMissing;
        },
        appliesTo: (uid, signal) => api.appliesTo(uid, signal),
        forget: (uid) => api.forget(uid),
        get served() {
          return api.served;
        },
      },
    },
  });
  const serve = (...now: string[]): void => {
    for (const version of ['v1', 'v1beta1']) {
      const resources = now.includes(version) ? [{ kind: 'VolumeAttributesClass' }] : [];
      rig.api.put(`${group}/${version}`, { metadata: { name: '' }, resources } as object as KubeObject);
    }
  };
  serve(...versions);
  const found = new OptionalApi({
    client: rig.settings.client,
    resource: volumeAttributesClasses,
    olderVersions: olderAttributesClassVersions,
    clock,
    logger: silentLogger,
  });
  const api = new FoundAttributesClassApi({ api: found, clock });
  await api.check();
  rig.api.requests.length = 0;
  /** Attempts at the claim, ten seconds apart. */
  const attempts = async (count: number, tried = claim): Promise<Outcome[]> => {
    const outcomes: Outcome[] = [];
    for (let number = 0; number < count; number++) {
      outcomes.push(await rig.provision(tried));
      await clock.advance(10_000);
    }
    return outcomes;
  };
  return { rig, serve, clock, attempts, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() };
}

/** The next read of the class has the answer of a server without such a path. */
function unserved(rig: Rig, at: string): void {
  rig.api.fail({ method: 'GET', path: at, code: 404, reason: 'NotFound', message: 'no such path' });
}

/** A rig whose API server no longer serves attributes classes, as one attempt has found. */
async function startAfterLoss() {
  const serving = await startServing('v1');
  serving.serve();
  unserved(serving.rig, path);
  assertFailed(await serving.rig.provision(claim), 'no-change', 'no such path');
  return serving;
}

describe('CsiProvisioner, the version of attributes classes', () => {
  for (const [versions, read] of [
    [['v1', 'v1beta1'], path],
    [['v1beta1'], olderPath],
  ] as const) {
    test(`where ${versions.join(' and ')} is served, the class is read at ${read}`, async () => {
      await using serving = await startServing(...versions);
      const { rig } = serving;
      putClass(rig, driverName, read);
      const volume = volumeOf(await rig.provision(claim));
      assert.deepEqual(rig.api.log, [`GET ${read}`]);
      assert.deepEqual(rig.createRequest['mutable_parameters'], { iops: '9' });
      assert.equal(volume.spec.volumeAttributesClassName, 'v');
      assert.deepEqual(rig.events, []);
    });
  }

  test('a missing class of v1beta1 is an error in the words of the API, and nothing is looked for', async () => {
    await using serving = await startServing('v1beta1');
    const { rig } = serving;
    assertFailed(await rig.provision(claim), 'no-change', 'volumeattributesclasses.storage.k8s.io "v" not found');
    assert.deepEqual(rig.api.log, [`GET ${olderPath}`]);
  });

  for (const { change, before, after } of [
    { change: 'an upgrade of the API server', before: 'v1beta1', after: 'v1' },
    { change: 'its downgrade', before: 'v1', after: 'v1beta1' },
  ]) {
    test(`${change} from ${before} to ${after} is noticed within the attempt`, async () => {
      await using serving = await startServing(before);
      const { rig } = serving;
      serving.serve(after);
      unserved(rig, before === 'v1' ? path : olderPath);
      putClass(rig, driverName, after === 'v1' ? path : olderPath);
      assert.equal(volumeOf(await rig.provision(claim)).spec.volumeAttributesClassName, 'v');
    });
  }

  test('an API that goes away fails the claim for a minute, and then the volume is made without its class', async () => {
    await using serving = await startAfterLoss();
    const { rig } = serving;
    for (const outcome of await serving.attempts(6)) assertFailed(outcome, 'no-change', 'is not served');
    assertNoCreate(rig);
    assert.equal(volumeOf(await rig.provision(claim)).spec.volumeAttributesClassName, undefined);
  });

  test('an API that comes back for a moment is waited for again', async () => {
    await using serving = await startAfterLoss();
    const { rig, serve } = serving;
    for (const outcome of await serving.attempts(6)) assertFailed(outcome, 'no-change', 'is not served');
    serve('v1');
    for (let read = 0; read < 3; read++) unserved(rig, path); // the class itself is asked of the other server
    assertFailed(await rig.provision(claim), 'no-change', 'no such path');
    serve();
    for (const outcome of await serving.attempts(6)) assertFailed(outcome, 'no-change', 'not found');
    assertNoCreate(rig);
  });

  test('each claim waits for a minute of its own, and for five attempts', async () => {
    await using serving = await startAfterLoss();
    const { rig, clock } = serving;
    await serving.attempts(6);
    const other = { ...claim, metadata: { ...claim.metadata, name: 'c2', uid: 'uid-c2' } };
    for (const outcome of await serving.attempts(1, other)) assertFailed(outcome, 'no-change', 'is not served');
    await clock.advance(300_000);
    for (const outcome of await serving.attempts(3, other)) assertFailed(outcome, 'no-change', 'is not served');
    assertNoCreate(rig);
    assert.equal(volumeOf(await rig.provision(other)).spec.volumeAttributesClassName, undefined);
  });

  test('a server that does not say what it serves is no reason to leave the class out', async () => {
    await using serving = await startAfterLoss();
    const { rig } = serving;
    await serving.attempts(6);
    rig.api.fail({ method: 'GET', path: `${group}/v1`, code: 500, reason: 'InternalError', message: 'later' });
    assertFailed(await rig.provision(claim), 'no-change', 'is not served');
    assertNoCreate(rig);
  });

  test('a class that only one of two servers has is read within the attempt', async () => {
    await using serving = await startServing('v1');
    const { rig } = serving;
    for (let read = 0; read < 2; read++) unserved(rig, path);
    putClass(rig);
    assert.equal(volumeOf(await rig.provision(claim)).spec.volumeAttributesClassName, 'v');
  });

  test('where none was ever served the volume is made without it at once, and an event says so once it is made', async () => {
    await using serving = await startServing();
    const { rig } = serving;
    rig.driver.next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'full'));
    assertFailed(await rig.provision(claim), 'finished', 'full');
    assert.equal(rig.events.length, 0);
    assert.equal(volumeOf(await rig.provision(claim)).spec.volumeAttributesClassName, undefined);
    const [event, ...more] = rig.events;
    assert.deepEqual(more, []);
    assert.equal(event?.type, 'Warning');
    assert.equal(event.reason, 'VolumeAttributesClassNotApplied');
    assert.match(event.message, /^Volume attributes class "v" was not applied: the API server does not serve /);
    assert.equal(event.about.name, 'c1');
  });

  test('an API that is installed meanwhile is used for the next claim', async () => {
    await using serving = await startServing();
    const { rig } = serving;
    serving.serve('v1');
    putClass(rig);
    assert.equal(volumeOf(await rig.provision(claim)).spec.volumeAttributesClassName, 'v');
    assert.deepEqual(rig.events, []);
  });

  test('a claim that names no class asks for nothing where none is served', async () => {
    await using serving = await startServing();
    const { rig } = serving;
    volumeOf(await rig.provision());
    assert.deepEqual(rig.api.requests, []);
    assert.deepEqual(rig.events, []);
  });
});
