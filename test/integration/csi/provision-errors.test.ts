/** What failures of the driver mean, the topology and node seams, odd answers. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { MigrationHook } from '../../../src/csi/migration/driver-migration.ts';
import {
  SelectedNodeGoneError,
  type TopologyHook,
  type TopologyQuestion,
} from '../../../src/csi/topology/planned-topology.ts';
import { codeName, CsiCallError } from '../../../src/csi/call-error.ts';
import { createVolumeError } from '../../../src/csi/error-policy.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import {
  assertFailed,
  assertNoCreate,
  driverName,
  makeClaim,
  makeClass,
  Rig,
  volumeOf,
} from '../../support/csi-rig.ts';

describe('createVolumeError', () => {
  const undecided = ['Canceled', 'DeadlineExceeded', 'Aborted', 'Unavailable'];
  for (let code = 1; code <= 17; code += 1) {
    const name = codeName(code);
    for (const mayReschedule of [true, false]) {
      const rescheduled = name === 'ResourceExhausted' && mayReschedule;
      const state = undecided.includes(name) ? 'in-background' : rescheduled ? 'reschedule' : 'finished';
      test(`${name}, rescheduling ${mayReschedule ? 'possible' : 'impossible'}: ${state}`, () => {
        const cause = new CsiCallError(code, 'x');
        const error = createVolumeError(cause, { mayReschedule });
        assert.equal(error.state, state);
        assert.equal(error.infeasible, name === 'InvalidArgument');
        assert.equal(error.message, cause.message);
        assert.equal(error.cause, cause);
      });
    }
  }

  for (const code of [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED, status.INTERNAL]) {
    test(`${codeName(code)} of a request that never left the process changes nothing`, () => {
      const error = createVolumeError(new CsiCallError(code, 'x', { sent: false }), { mayReschedule: true });
      assert.equal(error.state, 'no-change');
    });
  }

  test('what a failure reveals about earlier attempts depends on the code, and on a source', () => {
    const revealed = (name: string, contentSource: boolean, mayReschedule = false) => {
      const code = Array.from({ length: 17 }, (_, index) => index).find((each) => codeName(each) === name) ?? 0;
      return createVolumeError(new CsiCallError(code, 'x'), { mayReschedule, contentSource }).afterUnclear;
    };
    for (const mayReschedule of [true, false]) {
      assert.equal(revealed('ResourceExhausted', false, mayReschedule), 'absent-if-repeated');
    }
    for (const name of ['NotFound', 'InvalidArgument', 'AlreadyExists'])
      assert.equal(revealed(name, true), 'undecidable');
    assert.equal(revealed('AlreadyExists', false), 'undecidable');
    for (const name of ['NotFound', 'InvalidArgument']) assert.equal(revealed(name, false), 'nothing');
    for (const name of ['Internal', 'Unavailable', 'OutOfRange']) assert.equal(revealed(name, true), 'nothing');
  });

  test('what is no gRPC status leaves everything open', () => {
    assert.equal(createVolumeError(new Error('x'), { mayReschedule: true }).state, 'in-background');
  });
});

describe('CsiProvisioner, failures of CreateVolume', () => {
  const cases = [
    { name: 'DeadlineExceeded', code: status.DEADLINE_EXCEEDED, state: 'in-background' },
    { name: 'Canceled', code: status.CANCELLED, state: 'in-background' },
    { name: 'Aborted', code: status.ABORTED, state: 'in-background' },
    { name: 'Unavailable', code: status.UNAVAILABLE, state: 'in-background' },
    { name: 'Internal', code: status.INTERNAL, state: 'finished' },
    { name: 'Unknown', code: status.UNKNOWN, state: 'finished' },
    { name: 'AlreadyExists', code: status.ALREADY_EXISTS, state: 'finished' },
    { name: 'ResourceExhausted without topology', code: status.RESOURCE_EXHAUSTED, state: 'finished' },
  ];
  for (const { name, code, state } of cases) {
    test(`${name} ends the attempt as ${state}`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('CreateVolume', new DriverFailure(code, 'x'));
      assertFailed(await rig.provision(makeClaim(), makeClass(), { selectedNodeName: 'n1' }), state, 'desc = x');
    });
  }

  test('a message of several lines stays whole', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', new DriverFailure(status.INTERNAL, 'mount failed:\n  no such device'));
    const outcome = await rig.provision();
    assert.equal(outcome.error?.message, 'rpc error: code = Internal desc = mount failed:\n  no such device');
  });

  test('a hanging driver runs into the timeout', async () => {
    await using rig = await Rig.start({ timeoutMs: 150 });
    rig.driver.next('CreateVolume', () => new Promise<object>(() => undefined));
    const outcome = await rig.provision();
    assertFailed(outcome, 'in-background', 'rpc error: code = DeadlineExceeded desc = context deadline exceeded');
  });

  test('InvalidArgument is infeasible', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', new DriverFailure(status.INVALID_ARGUMENT, 'no'));
    const outcome = await rig.provision();
    assertFailed(outcome, 'finished', 'rpc error: code = InvalidArgument desc = no');
    assert.ok(outcome.error !== undefined && outcome.infeasible);
  });

  test('an exception that is no gRPC status leaves the outcome open', async () => {
    await using rig = await Rig.start();
    await rig.connection[Symbol.asyncDispose]();
    assertFailed(await rig.provision(), 'in-background', 'the connection to the driver is closed');
  });

  test('an exception that no step foresaw, before anything is sent, changes nothing', async () => {
    const surprise = (): never => {
      throw new TypeError('surprise');
    };
    await using rig = await Rig.start({ settings: { capabilities: surprise } });
    assertFailed(await rig.provision(), 'no-change', 'surprise');
    assertNoCreate(rig);
  });

  test('an aborted attempt leaves the outcome open', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', () => new Promise<object>(() => undefined));
    const abort = new AbortController();
    const outcome = rig.provision(makeClaim(), makeClass(), { signal: abort.signal });
    await rig.driver.called('CreateVolume');
    abort.abort();
    assertFailed(await outcome, 'in-background', 'rpc error: code = Canceled desc = context canceled');
  });

  test('a repeated attempt sends the same request', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', new DriverFailure(status.ABORTED, 'busy'));
    await rig.provision();
    volumeOf(await rig.provision());
    const [first, second] = rig.driver.callsOf('CreateVolume');
    assert.deepEqual(first?.request, second?.request);
  });
});

/** A topology of one zone, which records its questions. */
class RecordingTopology implements TopologyHook {
  readonly questions: TopologyQuestion[] = [];
  failure: Error | undefined;
  zone = 'a';

  requirements(question: TopologyQuestion) {
    this.questions.push(question);
    if (this.failure !== undefined) throw this.failure;
    const segments = { zone: this.zone };
    return { requisite: [{ segments }], preferred: [{ segments }] };
  }
}

/** The zones of all CreateVolume calls. */
function zonesOf({ driver }: Rig): unknown[] {
  return driver.callsOf('CreateVolume').map(({ request }) => {
    const { requisite } = request['accessibility_requirements'] as { requisite: { segments: { zone: string } }[] };
    return requisite[0]?.segments.zone;
  });
}

const topologyPlugin = ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'];

describe('CsiProvisioner, the topology seam', () => {
  const allowedTopologies = [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }];

  test('the requirement is asked for with what the scheduler chose, and sent', async () => {
    const topology = new RecordingTopology();
    await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology } });
    volumeOf(await rig.provision(makeClaim(), makeClass({}, { allowedTopologies }), { selectedNodeName: 'n1' }));
    assert.deepEqual(topology.questions, [{ claimName: 'c1', allowedTopologies, selectedNodeName: 'n1' }]);
    assert.deepEqual(rig.createRequest['accessibility_requirements'], {
      requisite: [{ segments: { zone: 'a' } }],
      preferred: [{ segments: { zone: 'a' } }],
    });
  });

  test('a driver without the capability is not asked for topology', async () => {
    const topology = new RecordingTopology();
    await using rig = await Rig.start({ settings: { topology } });
    volumeOf(await rig.provision());
    assert.deepEqual(topology.questions, []);
    assert.equal(rig.createRequest['accessibility_requirements'], undefined);
  });

  test('a selected node that is gone asks for another one', async () => {
    const topology = new RecordingTopology();
    topology.failure = new SelectedNodeGoneError('failed to get selected CSINode n1: gone');
    await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology } });
    const outcome = await rig.provision();
    assertFailed(outcome, 'reschedule', 'failed to get selected CSINode n1: gone');
    assert.equal(outcome.error?.message, 'failed to get selected CSINode n1: gone');
    assertNoCreate(rig);
  });

  test('any other failure has a prefix', async () => {
    const topology = new RecordingTopology();
    topology.failure = new Error('no available topology found');
    await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology } });
    const message = 'error generating accessibility requirements: no available topology found';
    assertFailed(await rig.provision(), 'no-change', message);
    assertNoCreate(rig);
  });

  const outcomes = [
    { name: 'full, no node chosen', code: status.RESOURCE_EXHAUSTED, node: '', state: 'finished' },
    { name: 'full, a node chosen', code: status.RESOURCE_EXHAUSTED, node: 'n1', state: 'reschedule' },
    { name: 'OutOfRange', code: status.OUT_OF_RANGE, node: 'n1', state: 'finished' },
    { name: 'Aborted', code: status.ABORTED, node: 'n1', state: 'in-background' },
    { name: 'DeadlineExceeded', code: status.DEADLINE_EXCEEDED, node: 'n1', state: 'in-background' },
    { name: 'Unavailable', code: status.UNAVAILABLE, node: 'n1', state: 'in-background' },
  ];
  for (const { name, code, node, state } of outcomes) {
    test(`${name}: ${state}`, async () => {
      const topology = new RecordingTopology();
      await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology } });
      rig.driver.next('CreateVolume', new DriverFailure(code, 'x'));
      assertFailed(await rig.provision(makeClaim(), makeClass(), { selectedNodeName: node }), state, 'x');
      assert.deepEqual(zonesOf(rig), ['a']);
    });
  }

  test('a request that was never sent has no effect: one that may be running is repeated, and no other', async () => {
    const topology = new RecordingTopology();
    await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology } });
    const neverSent = async (): Promise<void> => {
      const outcome = await rig.provision(makeClaim(), makeClass(), { signal: AbortSignal.abort() });
      assertFailed(outcome, 'no-change', 'context canceled');
    };
    await neverSent();
    topology.zone = 'b';
    rig.driver.next('CreateVolume', new DriverFailure(status.ABORTED, 'x'));
    await rig.provision();
    topology.zone = 'c';
    await neverSent();
    volumeOf(await rig.provision());
    assert.deepEqual(zonesOf(rig), ['b', 'b']);
  });

  test('a request with an unclear result is repeated unchanged, even if the claim and its class have changed', async () => {
    const topology = new RecordingTopology();
    await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology } });
    rig.driver.next('CreateVolume', new DriverFailure(status.DEADLINE_EXCEEDED, 'x'));
    await rig.provision(makeClaim(), makeClass({ type: 'old' }));
    topology.zone = 'b';
    const larger = makeClaim({ resources: { requests: { storage: '6Gi' } } });
    volumeOf(await rig.provision(larger, makeClass({ type: 'new' })));
    const [first, second] = rig.driver.callsOf('CreateVolume');
    assert.deepEqual(second?.request, first?.request);
    volumeOf(await rig.provision(larger, makeClass({ type: 'new' })));
    assert.deepEqual(zonesOf(rig), ['a', 'a', 'b'], 'not after its outcome is known');
  });

  const accessible_topology = [{ segments: { zone: 'a', rack: 'r' } }, {}, { segments: { zone: 'b' } }];

  test('an answer that is too long to be read leaves everything open: the volume is there', async () => {
    await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology: new RecordingTopology() } });
    rig.driver.next('CreateVolume', { volume: { volume_id: 'v', volume_context: { long: 'x'.repeat(5 << 20) } } });
    const outcome = await rig.provision(makeClaim(), makeClass(), { selectedNodeName: 'n1' });
    const text = 'rpc error: code = ResourceExhausted desc = Received message larger than max';
    assertFailed(outcome, 'in-background', text);
  });

  test('without topology support the answer binds the volume to no node', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'v', accessible_topology } });
    assert.equal(volumeOf(await rig.provision()).spec.nodeAffinity, undefined);
  });

  test('each topology of the answer becomes one term', async () => {
    await using rig = await Rig.start({ plugin: topologyPlugin, settings: { topology: new RecordingTopology() } });
    rig.driver.next('CreateVolume', { volume: { volume_id: 'v', accessible_topology } });
    assert.deepEqual(volumeOf(await rig.provision()).spec.nodeAffinity, {
      required: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: 'zone', operator: 'In', values: ['a'] },
              { key: 'rack', operator: 'In', values: ['r'] },
            ],
          },
          { matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] },
        ],
      },
    });
  });
});

describe('CsiProvisioner, the node seam', () => {
  test('a claim of another node is ignored', async () => {
    const node = {
      nodeName: 'n1',
      ownsClaim: () => Promise.resolve(false),
      ownsVolume: () => true,
      forgetClaim: () => undefined,
      roomFreed: () => undefined,
    };
    await using rig = await Rig.start({ settings: { node } });
    assert.equal(await rig.provisioner.shouldProvision(makeClaim()), false);
    const message =
      'ignored because not responsible for provisioning of PVC ns1/c1 because it is not assigned to node "n1"';
    assertFailed(await rig.provision(), 'IgnoredError', message);
    assertNoCreate(rig);
  });

  test('a failed check is reported only by provisioning', async () => {
    const node = {
      nodeName: 'n1',
      ownsClaim: () => Promise.reject(new Error('no class')),
      ownsVolume: () => true,
      forgetClaim: () => undefined,
      roomFreed: () => undefined,
    };
    await using rig = await Rig.start({ settings: { node } });
    assert.equal(await rig.provisioner.shouldProvision(makeClaim()), true);
    assertFailed(await rig.provision(), 'no-change', 'node check failed: no class');
    assertNoCreate(rig);
  });
});

describe('CsiProvisioner, the migration seam', () => {
  const inTree = makeClass({ type: 'x' }, { provisioner: 'kubernetes.io/aws-ebs', mountOptions: ['a'] });
  const migration: MigrationHook = {
    translateClass: (given) => (given === inTree ? { ...given, parameters: { type: 'translated' } } : given),
    toInTree: (volume) => ({ ...volume, metadata: { ...volume.metadata, labels: { migrated: 'yes' } } }),
    toCsi: (volume) => volume,
    hasSource: () => false,
    storageKeys: () => [],
    handleKey: (handle: string) => handle,
  };

  test('an in-tree class is translated for the driver and the volume back', async () => {
    await using rig = await Rig.start({ settings: { migration } });
    const volume = volumeOf(await rig.provision(makeClaim(), inTree));
    assert.deepEqual(rig.createRequest['parameters'], { type: 'translated' });
    assert.deepEqual(volume.metadata.labels, { migrated: 'yes' });
    assert.equal(rig.finishedCalls[0]?.migrated, true);
  });

  test('the class of the driver itself is not translated', async () => {
    await using rig = await Rig.start({ settings: { migration } });
    const volume = volumeOf(await rig.provision(makeClaim(), makeClass({ type: 'x' })));
    assert.deepEqual(rig.createRequest['parameters'], { type: 'x' });
    assert.equal(volume.metadata.labels, undefined);
    assert.equal(rig.finishedCalls[0]?.migrated, false);
  });

  test('a class that cannot be translated ends the attempt', async () => {
    const broken = {
      ...migration,
      translateClass: () => {
        throw new Error('cannot');
      },
    };
    await using rig = await Rig.start({ settings: { migration: broken } });
    assertFailed(await rig.provision(makeClaim(), inTree), 'finished', 'failed to translate storage class: cannot');
    assertNoCreate(rig);
  });

  test('a volume that cannot be translated is made again, not deleted', async () => {
    const broken = {
      ...migration,
      toInTree: () => {
        throw new Error('cannot');
      },
    };
    await using rig = await Rig.start({ settings: { migration: broken } });
    assertFailed(await rig.provision(makeClaim(), inTree), 'in-background', 'cannot');
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });
});

describe('CsiProvisioner, odd answers', () => {
  test('the driver may overwrite the identity', async () => {
    await using rig = await Rig.start();
    const volume_context = { 'storage.kubernetes.io/csiProvisionerIdentity': 'own', pool: 'a' };
    rig.driver.next('CreateVolume', { volume: { volume_id: 'v', volume_context } });
    assert.deepEqual(volumeOf(await rig.provision()).spec.csi?.volumeAttributes, volume_context);
  });

  test('a claim without volume mode gives a volume without one', async () => {
    await using rig = await Rig.start();
    const claim = makeClaim();
    delete claim.spec.volumeMode;
    assert.ok(!('volumeMode' in volumeOf(await rig.provision(claim)).spec));
    const [capability] = rig.createRequest['volume_capabilities'] as { access_type: string }[];
    assert.equal(capability?.access_type, 'mount');
  });

  test('reclaim policy Retain is taken over, an absent one stays absent', async () => {
    await using rig = await Rig.start();
    const retained = volumeOf(await rig.provision(makeClaim(), makeClass({}, { reclaimPolicy: 'Retain' })));
    assert.equal(retained.spec.persistentVolumeReclaimPolicy, 'Retain');
    const { reclaimPolicy: _, ...bare } = makeClass();
    assert.ok(!('persistentVolumeReclaimPolicy' in volumeOf(await rig.provision(makeClaim(), bare)).spec));
  });

  for (const volumeId of ['a#b//c=d&e', '42']) {
    test(`the volume id ${JSON.stringify(volumeId)} is kept untouched`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('CreateVolume', { volume: { volume_id: volumeId } });
      assert.equal(volumeOf(await rig.provision()).spec.csi?.volumeHandle, volumeId);
    });
  }

  test('a volume without an id has failed, and the driver is asked again', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', { volume: { volume_id: '' } });
    assertFailed(await rig.provision(), 'in-background', 'the response to CreateVolume has no volume_id');
  });

  test('a plain claim gives exactly this volume', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'vol-1', volume_context: { pool: 'a' } } });
    const claim = makeClaim({ resources: { requests: { storage: '1.5Gi' } } });
    const fast = makeClass({ 'csi.storage.k8s.io/fstype': 'xfs' }, { mountOptions: ['noatime'] });
    assert.deepEqual(volumeOf(await rig.provision(claim, fast)).spec, {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1536Mi' },
      csi: {
        driver: driverName,
        volumeHandle: 'vol-1',
        fsType: 'xfs',
        volumeAttributes: {
          pool: 'a',
          'storage.kubernetes.io/csiProvisionerIdentity': `1763640000000-1234-${driverName}`,
        },
      },
      mountOptions: ['noatime'],
      persistentVolumeReclaimPolicy: 'Delete',
      volumeMode: 'Filesystem',
    });
  });
});
