/** Access modes, capacity, volumes that are too small. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import type { AccessMode } from '../../../src/provision/objects.ts';
import { assertFailed, base64, makeClaim, makeClass, Rig, uid, volumeOf } from '../../support/csi-rig.ts';

/** Modes of the capabilities in the only request. */
function sentModes(rig: Rig): unknown[] {
  const capabilities = rig.createRequest['volume_capabilities'] as { access_mode: { mode: unknown } }[];
  return capabilities.map(({ access_mode }) => access_mode.mode);
}

const precise = ['CREATE_DELETE_VOLUME', 'SINGLE_NODE_MULTI_WRITER'];

describe('CsiProvisioner, access modes', () => {
  const cases: {
    name: string;
    accessModes: AccessMode[];
    controller?: string[];
    readOnlyFlag?: boolean;
    sent: string[];
    readOnly?: true;
  }[] = [
    { name: 'RWX', accessModes: ['ReadWriteMany'], sent: ['MULTI_NODE_MULTI_WRITER'] },
    { name: 'ROX', accessModes: ['ReadOnlyMany'], sent: ['MULTI_NODE_READER_ONLY'] },
    {
      name: 'ROX with the flag',
      accessModes: ['ReadOnlyMany'],
      readOnlyFlag: true,
      sent: ['MULTI_NODE_READER_ONLY'],
      readOnly: true,
    },
    {
      name: 'ROX and RWO with the flag',
      accessModes: ['ReadOnlyMany', 'ReadWriteOnce'],
      readOnlyFlag: true,
      sent: ['MULTI_NODE_READER_ONLY', 'SINGLE_NODE_WRITER'],
    },
    { name: 'RWOP', accessModes: ['ReadWriteOncePod'], sent: ['SINGLE_NODE_WRITER'] },
    {
      name: 'RWOP for a precise driver',
      accessModes: ['ReadWriteOncePod'],
      controller: precise,
      sent: ['SINGLE_NODE_SINGLE_WRITER'],
    },
    {
      name: 'RWO for a precise driver',
      accessModes: ['ReadWriteOnce'],
      controller: precise,
      sent: ['SINGLE_NODE_MULTI_WRITER'],
    },
    {
      name: 'repeated modes',
      accessModes: ['ReadWriteOnce', 'ReadWriteOnce'],
      sent: ['SINGLE_NODE_WRITER', 'SINGLE_NODE_WRITER'],
    },
  ];
  for (const { name, accessModes, controller, readOnlyFlag = false, sent, readOnly } of cases) {
    test(name, async () => {
      await using rig = await Rig.start({
        ...(controller === undefined ? {} : { controller }),
        settings: { controllerPublishReadOnly: readOnlyFlag },
      });
      const volume = volumeOf(await rig.provision(makeClaim({ accessModes })));
      assert.deepEqual(sentModes(rig), sent);
      assert.deepEqual(volume.spec.accessModes, accessModes);
      assert.equal(volume.spec.csi?.readOnly, readOnly);
    });
  }

  test('an unknown mode is refused', async () => {
    await using rig = await Rig.start();
    const outcome = await rig.provision(makeClaim({ accessModes: ['Odd' as AccessMode] }));
    assertFailed(outcome, 'finished', 'unsupported AccessMode combination: [Odd]');
  });
});

describe('CsiProvisioner, capacity', () => {
  const cases: { name: string; storage: string; required: string; answered?: string; capacity: string }[] = [
    { name: '1.5Gi is sent in bytes', storage: '1.5Gi', required: '1610612736', capacity: '1536Mi' },
    { name: '1G is sent in bytes', storage: '1G', required: '1000000000', capacity: '1000000000' },
    { name: 'a plain number is sent in bytes', storage: '1000', required: '1000', capacity: '1k' },
    { name: '4097 answered by 4097', storage: '4097', required: '4097', answered: '4097', capacity: '4097' },
    { name: '4097 answered by 8192', storage: '4097', required: '4097', answered: '8192', capacity: '8Ki' },
    {
      name: 'an answer of 0 means the request',
      storage: '5Gi',
      required: '5368709120',
      answered: '0',
      capacity: '5Gi',
    },
    {
      name: 'the largest number',
      storage: '9223372036854775807',
      required: '9223372036854775807',
      capacity: '9223372036854775807',
    },
  ];
  for (const { name, storage, required, answered, capacity } of cases) {
    test(name, async () => {
      await using rig = await Rig.start();
      if (answered !== undefined) {
        rig.driver.next('CreateVolume', { volume: { volume_id: 'vol-1', capacity_bytes: answered } });
      }
      const volume = volumeOf(await rig.provision(makeClaim({ resources: { requests: { storage } } })));
      assert.deepEqual(rig.createRequest['capacity_range'], { required_bytes: required });
      assert.deepEqual(volume.spec.capacity, { storage: capacity });
    });
  }

  test('limits are not sent', async () => {
    await using rig = await Rig.start();
    const resources = { requests: { storage: '5Gi' }, limits: { storage: '10Gi' } };
    volumeOf(await rig.provision(makeClaim({ resources })));
    assert.deepEqual(rig.createRequest['capacity_range'], { required_bytes: '5368709120' });
  });

  test('a claim without a request sends an empty range', async () => {
    await using rig = await Rig.start();
    const volume = volumeOf(await rig.provision(makeClaim({ resources: {} })));
    assert.deepEqual(rig.createRequest['capacity_range'], {});
    assert.deepEqual(volume.spec.capacity, { storage: '0' });
  });

  test('a request that is no quantity is named', async () => {
    await using rig = await Rig.start();
    const outcome = await rig.provision(makeClaim({ resources: { requests: { storage: '5 GB' } } }));
    assertFailed(outcome, 'finished', 'invalid quantity "5 GB"');
  });
});

describe('CsiProvisioner, a volume that is too small', () => {
  const claim = makeClaim({ resources: { requests: { storage: '100' } } });
  const small = { volume: { volume_id: 'vol-1', capacity_bytes: '80' } };
  const problem = 'created volume capacity 80 less than requested capacity 100';
  const parameters = {
    'csi.storage.k8s.io/provisioner-secret-name': 's',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'ns',
  };
  const internal = new DriverFailure(status.INTERNAL, 'x');

  test('is deleted with the secrets it was made with, and made again', async () => {
    await using rig = await Rig.start();
    rig.api.put('/api/v1/namespaces/ns/secrets/s', { metadata: { name: 's' }, data: { user: base64('u') } });
    rig.driver.next('CreateVolume', small);
    const outcome = await rig.provision(claim, makeClass(parameters));
    assertFailed(outcome, 'in-background', problem);
    assert.equal(outcome.error?.message, problem);
    const deletes = rig.driver.callsOf('DeleteVolume').map(({ request }) => request);
    assert.deepEqual(deletes, [{ volume_id: 'vol-1', secrets: { user: 'u' } }]);
    assert.equal(volumeOf(await rig.provision(claim, makeClass(parameters))).spec.csi?.volumeHandle, 'vol-1');
  });

  test('a negative size is too small', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'vol-1', capacity_bytes: '-1' } });
    const message = 'created volume capacity -1 less than requested capacity 100';
    assertFailed(await rig.provision(claim), 'in-background', message);
  });

  test('deleting is tried again at once', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', small);
    rig.driver.next('DeleteVolume', internal, internal);
    const outcome = await rig.provision(claim);
    assert.equal(outcome.error?.message, problem);
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 3);
  });

  test('after five failures an event names the orphan', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', small);
    rig.driver.always('DeleteVolume', internal);
    const outcome = await rig.provision(claim);
    assertFailed(outcome, 'in-background', problem);
    assert.equal(
      outcome.error?.message,
      `${problem}. Cleanup of volume pvc-${uid} failed, volume is orphaned: rpc error: code = Internal desc = x`,
    );
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 5);
  });

  test('all cleanup calls share one timeout', async () => {
    await using rig = await Rig.start({ timeoutMs: 1000 });
    rig.driver.next('CreateVolume', small);
    rig.driver.always('DeleteVolume', () => new Promise<object>(() => undefined));
    const outcome = await rig.provision(claim);
    assertFailed(outcome, 'in-background', 'volume is orphaned: rpc error: code = DeadlineExceeded');
    // a second one may still reach the driver, with what is left of the time
    const deadlines = rig.driver.callsOf('DeleteVolume').map(({ deadline }) => Number(deadline));
    assert.ok(deadlines.length > 0);
    assert.ok(Math.max(...deadlines) - Math.min(...deadlines) < 1000, 'no call has a timeout of its own');
  });

  test('a response without a volume fails the attempt', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', {});
    assertFailed(await rig.provision(claim), 'in-background', 'has no volume');
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });
});
