/** Volumes restored from a snapshot. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { openSource, type OpenSource } from '../../../../src/csi/sources/data-source.ts';
import type { PlannedVolume } from '../../../../src/csi/create/volume-plan.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '../../../../src/csi/sources/snapshot-source.ts';
import type { PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import type { Plan } from '../../../../src/provision/recoverable.ts';
import { conflictMessage } from '../../../support/fakes/api-server.ts';
import { DriverFailure } from '../../../support/fakes/recording-driver.ts';
import { assertFailed, assertNoCreate, driverName, makeClaim, Rig, volumeOf } from '../../../support/csi-rig.ts';

const finalizer = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';
const restorer = ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'];
const snapshotPath = '/apis/snapshot.storage.k8s.io/v1/namespaces/ns1/volumesnapshots/snap';
const contentPath = '/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/sc-1';
const wrapped = 'error getting handle for DataSource Type VolumeSnapshot by Name snap: ';
const dataSource = { kind: 'VolumeSnapshot', name: 'snap', apiGroup: 'snapshot.storage.k8s.io' };
const restore = makeClaim({ dataSource });

interface Setup {
  controller?: string[];
  claim?: PersistentVolumeClaim;
  preventVolumeModeConversion?: boolean;
  plannedSources?: () => Iterable<OpenSource>;
  snapshot?: Partial<VolumeSnapshot> | 'missing' | undefined;
  content?: Partial<VolumeSnapshotContent> | 'missing' | undefined;
}

const metadata = { name: 'snap', namespace: 'ns1', uid: 'uid-snap' };
const bound = { boundVolumeSnapshotContentName: 'sc-1', readyToUse: true, restoreSize: '5Gi' };
const contentSpec = {
  driver: driverName,
  volumeSnapshotRef: { kind: 'VolumeSnapshot', namespace: 'ns1', name: 'snap', uid: 'uid-snap' },
};

async function startRig(setup: Setup = {}): Promise<Rig> {
  const { controller = restorer, preventVolumeModeConversion = true, snapshot = {}, content = {} } = setup;
  const settings = { preventVolumeModeConversion, plannedSources: setup.plannedSources };
  const rig = await Rig.start({ controller, settings });
  if (snapshot !== 'missing') rig.api.put(snapshotPath, { metadata, status: bound, ...snapshot });
  if (content !== 'missing') {
    rig.api.put(contentPath, {
      metadata: { name: 'sc-1' },
      spec: contentSpec,
      status: { snapshotHandle: 'sid' },
      ...content,
    });
  }
  return rig;
}

function finalizers(rig: Rig): string[] {
  return rig.api.get(snapshotPath)?.metadata.finalizers ?? [];
}

describe('CsiProvisioner, restores', () => {
  test('the snapshot is protected for as long as the restore takes', async () => {
    await using rig = await startRig();
    let during: string[] = [];
    rig.driver.next('CreateVolume', ({ request }) => {
      during = finalizers(rig);
      return { volume: { volume_id: 'vol-1', content_source: request['volume_content_source'] } };
    });
    volumeOf(await rig.provision(restore));
    assert.deepEqual(rig.createRequest['volume_content_source'], {
      type: 'snapshot',
      snapshot: { snapshot_id: 'sid' },
    });
    assert.deepEqual(during, [finalizer]);
    assert.deepEqual(finalizers(rig), []);
    assert.deepEqual(rig.api.log, [
      `GET ${snapshotPath}`,
      `GET ${contentPath}`,
      `GET ${snapshotPath}`,
      `PUT ${snapshotPath}`,
      `GET ${snapshotPath}`,
      `PUT ${snapshotPath}`,
    ]);
  });

  const block = makeClaim({ dataSource, volumeMode: 'Block' });
  const sourceMode = { spec: { ...contentSpec, sourceVolumeMode: 'Filesystem' } };
  const modeAnnotation = 'snapshot.storage.kubernetes.io/allow-volume-mode-change';
  const modeError =
    'requested volume ns1/c1 modifies the mode of the source volume but does not have permission to do so. ';
  const annotated = (value: string): Setup['content'] => ({
    ...sourceMode,
    metadata: { name: 'sc-1', annotations: { [modeAnnotation]: value } },
  });

  const refused: (Setup & { name: string; message: string; state?: string })[] = [
    {
      name: 'no CREATE_DELETE_SNAPSHOT',
      controller: ['CREATE_DELETE_VOLUME'],
      message:
        'CSI driver does not support snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported',
      state: 'finished',
    },
    {
      name: 'a foreign group',
      claim: makeClaim({ dataSource: { ...dataSource, apiGroup: 'x.io' } }),
      message: 'the PVC source does not belong to the right APIGroup. Expected snapshot.storage.k8s.io, Got x.io',
      state: 'finished',
    },
    {
      name: 'no group',
      claim: makeClaim({ dataSource: { kind: 'VolumeSnapshot', name: 'snap' } }),
      message: 'the PVC source does not belong to the right APIGroup. Expected snapshot.storage.k8s.io, Got ',
      state: 'finished',
    },
    {
      name: 'no name',
      claim: makeClaim({ dataSource: { ...dataSource, name: '' } }),
      message: 'the PVC source not found for PVC c1',
      state: 'finished',
    },
    {
      name: 'no such snapshot',
      snapshot: 'missing',
      message: `${wrapped}error getting snapshot snap from api server: volumesnapshots.snapshot.storage.k8s.io "snap" not found`,
    },
    { name: 'no content name', snapshot: { status: {} }, message: `${wrapped}snapshot snap not bound` },
    {
      name: 'no such content',
      content: 'missing',
      message: `${wrapped}error getting snapshotcontent sc-1 for snapshot snap`,
    },
    ...['uid', 'namespace', 'name'].map((field) => ({
      name: `content refers to another ${field}`,
      content: { spec: { ...contentSpec, volumeSnapshotRef: { ...contentSpec.volumeSnapshotRef, [field]: 'x' } } },
      message: `${wrapped}snapshotcontent sc-1 for snapshot snap is bound to a different snapshot`,
    })),
    {
      name: 'content of another driver',
      content: { spec: { ...contentSpec, driver: 'other' } },
      message: `${wrapped}snapshotcontent sc-1 for snapshot snap is not handled by CSI driver of StorageClass sc`,
    },
    {
      name: 'not ready',
      snapshot: { status: { ...bound, readyToUse: false } },
      message: `${wrapped}snapshot snap is not Ready`,
    },
    {
      name: 'readiness unknown',
      snapshot: { status: { boundVolumeSnapshotContentName: 'sc-1' } },
      message: `${wrapped}snapshot snap is not Ready`,
    },
    {
      name: 'content without handle',
      content: { status: {} },
      message: `${wrapped}snapshot handle snap is not available`,
    },
    {
      name: 'claim smaller than the snapshot',
      claim: makeClaim({ dataSource, resources: { requests: { storage: '4Gi' } } }),
      message: `${wrapped}requested volume size 4294967296 is less than the size 5368709120 for the source snapshot snap`,
    },
    {
      name: 'a claim without a request',
      claim: makeClaim({ dataSource, resources: {} }),
      message: `${wrapped}error getting capacity for PVC c1 when creating snapshot snap`,
    },
    ...[[], ['foreign']].map((present) => ({
      name: `being deleted, finalizers [${present.join()}]`,
      snapshot: { metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: present } },
      message: `${wrapped}snapshot snap is being deleted`,
    })),
    {
      name: 'another mode without annotation',
      claim: block,
      content: sourceMode,
      message: `${wrapped}${modeError}${modeAnnotation} annotation is not present on snapshotcontent sc-1`,
    },
    {
      name: 'another mode, annotation false',
      claim: block,
      content: annotated('false'),
      message: `${wrapped}${modeError}${modeAnnotation} is set to false on snapshotcontent sc-1`,
    },
    {
      name: 'another mode, annotation yes',
      claim: block,
      content: annotated('yes'),
      message: `${wrapped}${modeError}failed to convert ${modeAnnotation} annotation value to boolean with error: strconv.ParseBool: parsing "yes": invalid syntax`,
    },
  ];
  for (const { name, message, state = 'no-change', ...setup } of refused) {
    test(`${name} is refused, and the snapshot not touched`, async () => {
      await using rig = await startRig(setup);
      const outcome = await rig.provision(setup.claim ?? restore);
      assertFailed(outcome, state, message);
      assert.equal(outcome.error?.message, message);
      assertNoCreate(rig);
      assert.deepEqual(
        rig.api.log.filter((line) => line.startsWith('PUT')),
        [],
      );
    });
  }

  const accepted: (Setup & { name: string })[] = [
    { name: 'a larger claim', claim: makeClaim({ dataSource, resources: { requests: { storage: '6Gi' } } }) },
    {
      name: 'no restore size',
      snapshot: { status: { boundVolumeSnapshotContentName: 'sc-1', readyToUse: true } },
    },
    {
      name: 'being deleted but protected by an earlier attempt',
      snapshot: { metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer] } },
    },
    { name: 'another mode, annotation true', claim: block, content: annotated('true') },
    { name: 'another mode, annotation 1', claim: block, content: annotated('1') },
    { name: 'another mode, annotation T', claim: block, content: annotated('T') },
    { name: 'another mode, check off', claim: block, content: sourceMode, preventVolumeModeConversion: false },
    { name: 'mode of the source unknown', claim: block },
  ];
  for (const { name, ...setup } of accepted) {
    test(`${name} is restored`, async () => {
      await using rig = await startRig(setup);
      const volume = volumeOf(await rig.provision(setup.claim ?? restore));
      assert.deepEqual(rig.createRequest['volume_content_source'], {
        type: 'snapshot',
        snapshot: { snapshot_id: 'sid' },
      });
      assert.equal(volume.spec.csi?.fsType, undefined);
      assert.deepEqual(finalizers(rig), []);
    });
  }
});

describe('CsiProvisioner, protecting a snapshot', () => {
  const failure = {
    method: 'PUT',
    path: snapshotPath,
    code: 409,
    reason: 'Conflict',
    message: conflictMessage(snapshotPath),
  };
  const forbidden = { ...failure, code: 403, reason: 'Forbidden', message: 'no' };

  test('without permission the restore goes on unprotected', async () => {
    await using rig = await startRig();
    rig.api.fail({ ...forbidden, times: 100 });
    volumeOf(await rig.provision(restore));
    assert.deepEqual(finalizers(rig), []);
    assert.deepEqual(rig.events, []);
  });

  test('conflicts without end fail the attempt with the plain text of the API', async () => {
    await using rig = await startRig();
    rig.api.fail({ ...failure, times: 100 });
    const outcome = await rig.provision(restore);
    assertFailed(outcome, 'no-change', failure.message);
    assert.equal(outcome.error?.message, failure.message);
    assertNoCreate(rig);
  });

  test('a conflict is read again within the attempt', async () => {
    await using rig = await startRig();
    rig.api.fail(failure);
    volumeOf(await rig.provision(restore));
    assert.deepEqual(finalizers(rig), []);
  });

  test('a failed read fails the attempt', async () => {
    await using rig = await startRig();
    rig.api.fail({ method: 'GET', path: snapshotPath, code: 403, reason: 'Forbidden', message: 'not to be read' });
    const outcome = await rig.provision(restore);
    assertFailed(outcome, 'no-change', `${wrapped}error getting snapshot snap from api server: not to be read`);
  });

  test('a cluster without the snapshot API is named as the cause', async () => {
    await using rig = await startRig();
    const message = 'the server could not find the requested resource';
    rig.api.fail({ method: 'GET', path: snapshotPath, code: 404, reason: 'NotFound', message });
    const want = 'the API snapshot.storage.k8s.io/v1 is not installed in the cluster';
    const outcome = await rig.provision(restore);
    assertFailed(outcome, 'no-change', `${wrapped}error getting snapshot snap from api server: ${want}`);
  });

  test('a failed CreateVolume leaves the protection', async () => {
    await using rig = await startRig();
    rig.driver.next('CreateVolume', new DriverFailure(status.INTERNAL, 'x'));
    assertFailed(await rig.provision(restore), 'finished', 'rpc error: code = Internal desc = x');
    assert.deepEqual(finalizers(rig), [finalizer]);
  });

  test('an answer without content source leaves the protection', async () => {
    await using rig = await startRig();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'vol-1' } });
    assertFailed(await rig.provision(restore), 'in-background', 'volume content source missing');
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 1);
    assert.deepEqual(finalizers(rig), [finalizer]);
  });

  test('taking the protection off keeps the finalizers of others', async () => {
    await using rig = await startRig({ snapshot: { metadata: { ...metadata, finalizers: ['a', finalizer, 'b'] } } });
    volumeOf(await rig.provision(restore));
    assert.deepEqual(finalizers(rig), ['a', 'b']);
  });

  test('an exception that no step foresaw, after the request was sent, leaves the outcome open', async () => {
    const plannedSources = (): never => {
      throw new TypeError('surprise');
    };
    await using rig = await startRig({ plannedSources });
    assertFailed(await rig.provision(restore), 'in-background', 'surprise');
    assertFailed(await rig.provision(restore), 'in-background', 'surprise');
    const [first, second] = rig.driver.callsOf('CreateVolume');
    assert.ok(first !== undefined);
    assert.deepEqual(second?.request, first.request);
  });

  for (const [code, reason] of [
    [403, 'Forbidden'],
    [404, 'NotFound'],
    [500, 'InternalError'],
  ] as const) {
    test(`a ${reason} while the protection is taken off does not fail the restore`, async () => {
      await using rig = await startRig();
      rig.driver.next('CreateVolume', ({ request }) => {
        rig.api.fail({ ...failure, code, reason, message: 'x', times: 100 });
        return { volume: { volume_id: 'vol-1', content_source: request['volume_content_source'] } };
      });
      volumeOf(await rig.provision(restore));
      assert.deepEqual(finalizers(rig), [finalizer]);
    });
  }

  test('a retry sets the finalizer again after another process has removed it', async () => {
    await using rig = await startRig();
    rig.driver.next('CreateVolume', () => {
      rig.api.put(snapshotPath, { metadata, status: bound }); // as the process of another node, after a restore of its own
      throw new DriverFailure(status.ABORTED, 'busy');
    });
    assertFailed(await rig.provision(restore), 'in-background', 'busy');
    assert.deepEqual(finalizers(rig), []);
    rig.driver.next('CreateVolume', new DriverFailure(status.ABORTED, 'busy'));
    assertFailed(await rig.provision(restore), 'in-background', 'busy');
    assert.deepEqual(finalizers(rig), [finalizer]);
    volumeOf(await rig.provision(restore));
    assert.deepEqual(finalizers(rig), []);
  });

  test('the second of two restores protects the snapshot again', async () => {
    await using rig = await startRig();
    volumeOf(await rig.provision(restore));
    assert.deepEqual(finalizers(rig), []);
    rig.driver.next('CreateVolume', new DriverFailure(status.ABORTED, 'busy'));
    assertFailed(await rig.provision(makeClaim({ dataSource }, { name: 'c2', uid: 'uid-2' })), 'in-background', 'busy');
    assert.deepEqual(finalizers(rig), [finalizer]);
  });
});

describe('CsiProvisioner, several restores of a snapshot', () => {
  const { signal } = new AbortController();
  const attempt = { mayExist: false, beforeDelete: () => Promise.resolve(), signal };
  const claimOf = (number: number) => makeClaim({ dataSource }, { name: `c${number}`, uid: `uid-${number}` });

  /** Plans that are recorded; what the controller does with them is up to the test. */
  async function startWithPlans(count: number) {
    const open = new Set<Plan>();
    let planned: PlannedVolume | undefined;
    const plannedSources = () => [...open].flatMap((plan) => openSource(plan) ?? []);
    const rig = await startRig({ plannedSources });
    for (let number = 1; number <= count; number += 1) {
      planned = await rig.provisioner.plan(rig.options(claimOf(number)), { signal });
      open.add(planned.plan);
    }
    return { rig, open, planned, plans: [...open] as [Plan, Plan, ...Plan[]] };
  }

  test('a restore whose snapshot was recreated after planning fails before CreateVolume, and the new snapshot gets no finalizer', async () => {
    const { rig, plans, planned } = await startWithPlans(1);
    await using _ = rig;
    rig.api.put(snapshotPath, { metadata: { ...metadata, uid: 'uid-other' }, status: bound });
    await assert.rejects(rig.provisioner.fulfil(plans[0], { ...attempt, planned }), {
      name: 'ProvisionError',
      state: 'no-change',
      message: 'the VolumeSnapshot snap was replaced by another of the same name',
    });
    assertNoCreate(rig);
    assert.deepEqual(finalizers(rig), []);
  });

  test('only the last one that is copied removes the protection, also while records are still open', async () => {
    const { rig, plans } = await startWithPlans(3);
    await using _ = rig;
    for (const plan of plans) {
      assert.deepEqual(finalizers(rig), plan === plans[0] ? [] : [finalizer]);
      await rig.provisioner.fulfil(plan, attempt);
    }
    assert.deepEqual(finalizers(rig), []);
  });

  test('one that begins while the protection is being removed keeps it', async () => {
    const { rig, open, plans } = await startWithPlans(2);
    await using _ = rig;
    const [first, second] = plans;
    open.delete(second);
    rig.driver.next('CreateVolume', ({ request }) => {
      rig.api.fail({
        method: 'PUT',
        path: snapshotPath,
        code: 409,
        reason: 'Conflict',
        message: conflictMessage(snapshotPath),
        before: () => open.add(second),
      });
      return { volume: { volume_id: 'vol-1', content_source: request['volume_content_source'] } };
    });
    await rig.provisioner.fulfil(first, attempt);
    assert.deepEqual(finalizers(rig), [finalizer]);
  });

  test('a plan of which nothing will be made frees the snapshot, unless something else needs it', async () => {
    const { rig, open, plans } = await startWithPlans(2);
    await using _ = rig;
    rig.driver.always('CreateVolume', new DriverFailure(status.INTERNAL, 'x'));
    for (const plan of plans) await assert.rejects(rig.provisioner.fulfil(plan, attempt));
    const [first, second] = plans;
    await rig.provisioner.release(first, { signal });
    assert.deepEqual(finalizers(rig), [finalizer], 'the second is open');
    open.clear();
    rig.claims.set(claimOf(2));
    await rig.provisioner.release(second, { signal });
    assert.deepEqual(finalizers(rig), [finalizer], 'its claim waits for the next attempt');
    rig.claims.delete('ns1/c2');
    await rig.provisioner.release(second, { signal });
    assert.deepEqual(finalizers(rig), []);
  });

  test('to free the snapshot never fails, whatever the plan and the server are like', async () => {
    const { rig, plans } = await startWithPlans(1);
    await using _ = rig;
    for (const plan of [{}, { source: 'x' }, { claim: { uid: 'u' }, source: { handling: 'snapshot' } }]) {
      await rig.provisioner.release(plan, { signal });
    }
    rig.api.fail({ method: 'GET', path: snapshotPath, code: 500, reason: 'InternalError', message: 'x' });
    await rig.provisioner.release(plans[0], { signal });
  });

  test('a snapshot of another namespace is left to the sweep', async () => {
    const { rig, plans } = await startWithPlans(1);
    await using _ = rig;
    const before = rig.api.log.length;
    await rig.provisioner.release({ ...plans[0], claim: { namespace: 'ns2', name: 'c', uid: 'u' } }, { signal });
    assert.equal(rig.api.log.length, before);
  });
});

test('a request without a clear result is repeated though its snapshot is gone', async () => {
  await using rig = await startRig();
  rig.driver.next('CreateVolume', new DriverFailure(status.DEADLINE_EXCEEDED, 'too slow'));
  await rig.provision(restore);
  rig.api.remove(snapshotPath);
  await rig.provision(restore);
  const [first, second] = rig.driver.callsOf('CreateVolume');
  assert.deepEqual(second?.request, first?.request);
  assert.ok(first);
});

describe('openSource', () => {
  const claim = { namespace: 'ns', name: 'c', uid: 'u' };
  const snapshot = { handling: 'snapshot', namespace: 'ns', name: 's' };
  const clone = { handling: 'clone', namespace: 'ns', name: 's', uid: 'uid-s' };
  test('finds the source of a plan, also of one that cannot be fulfilled', () => {
    assert.deepEqual(openSource({ claim, source: snapshot }), { claimUid: 'u', claim: 'ns/c', source: snapshot });
    assert.deepEqual(openSource({ claim, source: clone, added: 1 }), { claimUid: 'u', claim: 'ns/c', source: clone });
    assert.deepEqual(openSource({ claim: { uid: 'u' }, source: clone }), { claimUid: 'u', claim: 'u', source: clone });
  });
  test('finds nothing where a plan names none', () => {
    for (const plan of [
      {},
      { claim },
      { claim, source: null },
      { claim, source: { ...clone, uid: 1 } },
      { source: clone },
    ]) {
      assert.equal(openSource(plan), undefined);
    }
  });
});
