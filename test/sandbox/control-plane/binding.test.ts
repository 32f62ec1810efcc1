import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { annotation, volumeProtectionFinalizer } from '../../../sandbox/control-plane/annotations.ts';
import { subscribeTo, updateObject } from '../../../sandbox/control-plane/object-access.ts';
import { resources } from '../../../sandbox/control-plane/objects.ts';
import { Cluster } from './cluster.ts';
import { ProvisionerDouble } from './provisioner-double.ts';

const defaultClass = (value = 'true'): object => ({
  metadata: { name: 'standard', annotations: { [annotation.defaultClass]: value } },
});

describe('claims and their class', () => {
  test('a claim without class gets the one default class at create, and the finalizer', async () => {
    await using cluster = new Cluster();
    cluster.addClass('standard', defaultClass());
    const claim = cluster.addClaim('c');
    assert.equal(claim.spec.storageClassName, 'standard');
    assert.deepEqual(claim.metadata.finalizers, ['kubernetes.io/pvc-protection']);
  });

  test('of two default classes the newest wins, also for a claim that is older than both', async () => {
    const wallShift = { ms: 0 };
    await using cluster = new Cluster({ wallShift });
    cluster.addClaim('before');
    wallShift.ms = 5000;
    cluster.addClass('newer', { metadata: { name: 'newer', annotations: { [annotation.defaultClass]: 'true' } } });
    wallShift.ms = 0;
    cluster.addClass('a-older', { metadata: { name: 'a-older', annotations: { [annotation.defaultClass]: 'true' } } });
    assert.equal(cluster.addClaim('after').spec.storageClassName, 'newer');
    const claim = await cluster.until('a class', () => cluster.claim('before')?.spec.storageClassName);
    assert.equal(claim, 'newer');
  });

  test('a claim with the empty class stays with it and reports that nothing fits', async () => {
    await using cluster = new Cluster();
    cluster.addClass('standard', defaultClass());
    cluster.addClaim('c', '');
    const event = await cluster.eventAbout('c', 'FailedBinding');
    assert.equal(event.type, 'Normal');
    assert.equal(event.message, 'no persistent volumes available for this claim and no storage class is set');
    assert.equal(cluster.claim('c')?.spec.storageClassName, '');
    assert.equal(cluster.claim('c')?.status?.phase, 'Pending');
  });

  test('a default class that comes later is given to the waiting claim, and provisioning starts', async () => {
    await using cluster = new Cluster({ resyncMs: 60_000 });
    cluster.addClaim('c');
    await cluster.eventAbout('c', 'FailedBinding');
    cluster.addClass('standard', defaultClass());
    await cluster.eventAbout('c', 'ExternalProvisioning');
    assert.equal(cluster.claim('c')?.spec.storageClassName, 'standard');
    assert.equal(cluster.claim('c')?.metadata.annotations?.[annotation.storageProvisioner], 'x.example.com');
  });
});

describe('provisioning', () => {
  test('without a provisioner the claim is annotated, reported at every resync and stays Pending', async () => {
    await using cluster = new Cluster({ resyncMs: 30 });
    cluster.addClaim('c', 'fast');
    const event = await cluster.until('a growing count', () => {
      const found = cluster.event('c', 'ExternalProvisioning');
      return (found?.count ?? 0) >= 4 && found;
    });
    assert.equal(
      event.message,
      "Waiting for a volume to be created either by the external provisioner 'x.example.com' or manually by the " +
        'system administrator. If volume creation is delayed, please verify that the provisioner is running and ' +
        'correctly registered.',
    );
    assert.equal(event.type, 'Normal');
    assert.deepEqual(event['source'], { component: 'persistentvolume-controller' });
    const claim = cluster.claim('c');
    assert.deepEqual(claim?.metadata.annotations, {
      [annotation.betaStorageProvisioner]: 'x.example.com',
      [annotation.storageProvisioner]: 'x.example.com',
    });
    assert.equal(claim.status?.phase, 'Pending');
    assert.equal(claim.spec.volumeName, undefined);
  });

  test('with a provisioner claim and volume are bound, the claim alone by the controller', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    const { metadata } = cluster.addClaim('c', 'fast', { size: '3Gi' });
    const claim = await cluster.claimInPhase('c', 'Bound');
    assert.equal(claim.spec.volumeName, `pvc-${metadata.uid}`);
    assert.equal(claim.metadata.annotations?.[annotation.bindCompleted], 'yes');
    assert.equal(claim.metadata.annotations[annotation.boundByController], 'yes');
    assert.deepEqual(claim.status?.capacity, { storage: '3Gi' });
    assert.deepEqual(claim.status.accessModes, ['ReadWriteOnce']);
    const volume = cluster.volume(`pvc-${metadata.uid}`);
    assert.equal(volume?.status?.phase, 'Bound');
    assert.equal(volume.metadata.annotations?.[annotation.boundByController], undefined);
    assert.ok(volume.metadata.finalizers?.includes(volumeProtectionFinalizer));
  });

  test('the four writes of a binding come in their order', async () => {
    await using cluster = new Cluster();
    const seen: { rv: number; state: string }[] = [];
    subscribeTo(cluster.client, resources.volumes, ({ object: { metadata, spec, status } }) => {
      const state = `volume ref=${spec.claimRef?.name ?? '-'} ${status?.phase ?? '-'}`;
      seen.push({ rv: Number(metadata.resourceVersion), state });
    });
    subscribeTo(cluster.client, resources.claims, ({ object: { metadata, spec, status } }) => {
      const state = `claim ${spec.volumeName ?? '-'} ${status?.phase ?? '-'}`;
      seen.push({ rv: Number(metadata.resourceVersion), state });
    });
    cluster.addVolume('v', '1Gi');
    await cluster.volumeInPhase('v', 'Available');
    cluster.addClaim('c', '');
    await cluster.claimInPhase('c', 'Bound');
    await turn(); // subscribers hear of a commit within the turn that follows it
    seen.sort((a, b) => a.rv - b.rv);
    assert.deepEqual(
      seen.map(({ state }) => state),
      [
        'volume ref=- Pending',
        'volume ref=- Available',
        'claim - Pending',
        'volume ref=c Available',
        'volume ref=c Bound',
        'claim v Pending',
        'claim v Bound',
      ],
    );
  });

  test('an unknown class is reported with the not-found text and served once it exists', async () => {
    await using cluster = new Cluster({ resyncMs: 60_000 });
    cluster.addClaim('c', 'none-such');
    const event = await cluster.eventAbout('c', 'ProvisioningFailed');
    assert.equal(event.type, 'Warning');
    assert.equal(event.message, 'storageclass.storage.k8s.io "none-such" not found');
    cluster.addClass('none-such');
    await cluster.eventAbout('c', 'ExternalProvisioning');
  });

  test('a class of a provisioner that no cluster has any more fails provisioning', async () => {
    await using cluster = new Cluster();
    cluster.addClass('local', { provisioner: 'kubernetes.io/no-provisioner' });
    cluster.addClaim('c', 'local');
    const event = await cluster.eventAbout('c', 'ProvisioningFailed');
    assert.equal(event.message, 'no volume plugin matched name: kubernetes.io/no-provisioner');
  });

  test('a claim of a delayed class without a pod waits for its first consumer', async () => {
    await using cluster = new Cluster();
    cluster.addClaim('c', 'late');
    const event = await cluster.eventAbout('c', 'WaitForFirstConsumer');
    assert.equal(event.message, 'waiting for first consumer to be created before binding');
    assert.equal(cluster.claim('c')?.metadata.annotations, undefined);
    assert.equal(cluster.claim('c')?.status?.phase, 'Pending');
  });

  test('with an unschedulable pod the claim says which pod it waits for', async () => {
    await using cluster = new Cluster({ resyncMs: 60_000 });
    cluster.addClaim('c', 'late');
    await cluster.eventAbout('c', 'WaitForFirstConsumer');
    cluster.addPod('p', ['c'], { nodeSelector: { nowhere: 'true' } });
    const event = await cluster.eventAbout('c', 'WaitForPodScheduled');
    assert.equal(event.message, 'waiting for pod p to be scheduled');
    assert.equal(cluster.claim('c')?.metadata.annotations, undefined);
  });
});

describe('volumes made beforehand', () => {
  test('the smallest volume that is large enough is bound, by the controller on both sides', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('ten', '10Gi');
    cluster.addVolume('five', '5Gi');
    await cluster.volumeInPhase('ten', 'Available');
    await cluster.volumeInPhase('five', 'Available');
    const created = cluster.addClaim('c', '', { size: '4Gi' });
    const claim = await cluster.claimInPhase('c', 'Bound');
    assert.equal(claim.spec.volumeName, 'five');
    assert.equal(claim.metadata.annotations?.[annotation.boundByController], 'yes');
    assert.deepEqual(claim.status?.capacity, { storage: '5Gi' });
    const volume = await cluster.volumeInPhase('five', 'Bound');
    assert.equal(volume.metadata.annotations?.[annotation.boundByController], 'yes');
    assert.deepEqual(volume.spec.claimRef, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: 'default',
      name: 'c',
      uid: created.metadata.uid,
      resourceVersion: created.metadata.resourceVersion,
    });
    assert.equal(cluster.volume('ten')?.status?.phase, 'Available');
  });

  test('a claim that was there first gets the volume without waiting for a resync', async () => {
    await using cluster = new Cluster({ resyncMs: 60_000 });
    cluster.addClaim('picky', '', { selector: { matchLabels: { tier: 'gold' } } });
    cluster.addClaim('c', '', { size: '4Gi' });
    await cluster.eventAbout('c', 'FailedBinding');
    cluster.addVolume('five', '5Gi');
    assert.equal((await cluster.claimInPhase('c', 'Bound')).spec.volumeName, 'five');
    assert.equal(cluster.claim('picky')?.status?.phase, 'Pending');
  });

  test('a volume reserved by name is bound to the claim of that name, not by the controller', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('v', '1Gi', { claimRef: { namespace: 'default', name: 'c' } });
    await cluster.volumeInPhase('v', 'Available');
    cluster.addClaim('other', '');
    await cluster.eventAbout('other', 'FailedBinding');
    const { metadata } = cluster.addClaim('c', '');
    await cluster.claimInPhase('c', 'Bound');
    const volume = cluster.volume('v');
    assert.equal(volume?.spec.claimRef?.uid, metadata.uid);
    assert.equal(volume?.metadata.annotations?.[annotation.boundByController], undefined);
    assert.equal(cluster.claim('other')?.status?.phase, 'Pending');
  });

  test('a claim that names a volume of another class reports the mismatch', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('v', '1Gi', { storageClassName: 'other' });
    cluster.addClaim('c', '', { volumeName: 'v' });
    const event = await cluster.eventAbout('c', 'VolumeMismatch');
    assert.equal(event.type, 'Warning');
    assert.equal(event.message, 'Cannot bind to requested volume "v": storageClassName does not match');
    assert.equal(cluster.claim('c')?.status?.phase, 'Pending');
    assert.equal((await cluster.volumeInPhase('v', 'Available')).spec.claimRef, undefined);
  });

  for (const { why, volume, claim } of [
    { why: 'requested PV is too small', volume: {}, claim: { size: '2Gi' } },
    { why: 'incompatible volumeMode', volume: { volumeMode: 'Block' }, claim: {} },
    { why: 'incompatible accessMode', volume: { accessModes: ['ReadWriteMany'] }, claim: {} },
  ]) {
    test(`a claim that names an unfit volume says: ${why}`, async () => {
      await using cluster = new Cluster();
      cluster.addVolume('v', '1Gi', volume);
      cluster.addClaim('c', '', { volumeName: 'v', ...claim });
      const event = await cluster.eventAbout('c', 'VolumeMismatch');
      assert.equal(event.message, `Cannot bind to requested volume "v": ${why}`);
    });
  }

  test('of two claims that name the same volume the first is bound, the second reports', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('v', '1Gi');
    cluster.addClaim('first', '', { volumeName: 'v' });
    await cluster.claimInPhase('first', 'Bound');
    cluster.addClaim('second', '', { volumeName: 'v' });
    const event = await cluster.eventAbout('second', 'FailedBinding');
    assert.equal(event.type, 'Warning');
    assert.equal(event.message, 'volume "v" already bound to a different claim.');
    assert.equal(cluster.claim('second')?.status?.phase, 'Pending');
  });

  test('a volume of another mode than its claim is reported on both and not bound', async () => {
    await using cluster = new Cluster();
    const { metadata } = cluster.addClaim('c', 'late');
    cluster.addVolume('v', '1Gi', {
      volumeMode: 'Block',
      storageClassName: 'late',
      claimRef: { namespace: 'default', name: 'c', uid: metadata.uid },
    });
    assert.equal(
      (await cluster.eventAbout('v', 'VolumeMismatch')).message,
      'Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.',
    );
    assert.equal(
      (await cluster.eventAbout('c', 'VolumeMismatch')).message,
      'Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode.',
    );
    assert.equal(cluster.claim('c')?.spec.volumeName, undefined);
  });

  test('a claim that names a volume gets it as soon as it is created', async () => {
    await using cluster = new Cluster({ resyncMs: 60_000 });
    cluster.addClaim('c', '', { volumeName: 'v' });
    cluster.addVolume('v', '1Gi');
    const claim = await cluster.claimInPhase('c', 'Bound');
    assert.equal(claim.metadata.annotations?.[annotation.boundByController], undefined);
  });
});

describe('the end of a binding', () => {
  test('the volume of a deleted claim is Released and deleted by the provisioner', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    const { metadata } = cluster.addClaim('c', 'fast');
    await cluster.claimInPhase('c', 'Bound');
    const phases: (string | undefined)[] = [];
    cluster.client.subscribe(resources.volumes, ({ object }) => {
      phases.push((object['status'] as { phase?: string } | undefined)?.phase);
    });
    cluster.deleteClaim('c');
    await cluster.until('no volume', () => cluster.volume(`pvc-${metadata.uid}`) === undefined);
    assert.equal(phases[0], 'Released');
    assert.equal(cluster.claim('c'), undefined);
  });

  test('a retained volume stays with its old claim, a claim of the same name gets another', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClass('keep', { reclaimPolicy: 'Retain' });
    const { metadata: old } = cluster.addClaim('c', 'keep');
    await cluster.claimInPhase('c', 'Bound');
    cluster.deleteClaim('c');
    const released = await cluster.volumeInPhase(`pvc-${old.uid}`, 'Released');
    assert.equal(released.spec.claimRef?.uid, old.uid);

    const { metadata: fresh } = cluster.addClaim('c', 'keep');
    assert.equal((await cluster.claimInPhase('c', 'Bound')).spec.volumeName, `pvc-${fresh.uid}`);
    assert.deepEqual(cluster.volume(`pvc-${old.uid}`), released);
  });

  test('a released volume becomes Available when an administrator drops its claimRef', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('v', '1Gi');
    cluster.addClaim('c', '', { volumeName: 'v' });
    await cluster.claimInPhase('c', 'Bound');
    cluster.deleteClaim('c');
    const released = await cluster.volumeInPhase('v', 'Released');
    updateObject(cluster.client, resources.volumes, released, (copy) => {
      delete copy.spec.claimRef;
    });
    await cluster.volumeInPhase('v', 'Available');
    cluster.addClaim('next', '');
    assert.equal((await cluster.claimInPhase('next', 'Bound')).spec.volumeName, 'v');
  });

  test('a bound volume that is deleted waits for its claim, then its deleter removes it', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    const { metadata } = cluster.addClaim('c', 'fast');
    const name = `pvc-${metadata.uid}`;
    await cluster.claimInPhase('c', 'Bound');
    cluster.client.delete(resources.volumes, { name });
    // A write of the volume's own goes through all controllers before the claim is looked at.
    cluster.addClaim('witness', '');
    await cluster.eventAbout('witness', 'FailedBinding');
    assert.equal(cluster.volume(name)?.status?.phase, 'Bound');
    assert.notEqual(cluster.volume(name)?.metadata.deletionTimestamp, undefined);
    cluster.deleteClaim('c');
    await cluster.until('no volume', () => cluster.volume(name) === undefined);
  });

  test('a claim whose volume is removed by force is Lost, and says so once', async () => {
    await using cluster = new Cluster({ resyncMs: 20 });
    cluster.addVolume('v', '1Gi');
    cluster.addClaim('c', '', { volumeName: 'v' });
    await cluster.claimInPhase('c', 'Bound');
    cluster.client.delete(resources.volumes, { name: 'v' });
    const volume = cluster.volume('v');
    assert.ok(volume !== undefined);
    updateObject(cluster.client, resources.volumes, volume, ({ metadata }) => {
      metadata.finalizers = [];
    });
    const claim = await cluster.claimInPhase('c', 'Lost');
    assert.equal(claim.status?.capacity, undefined);
    assert.equal(claim.status?.accessModes, undefined);
    cluster.addClaim('witness', '');
    await cluster.until('more resyncs', () => (cluster.event('witness', 'FailedBinding')?.count ?? 0) > 3);
    const event = cluster.event('c', 'ClaimLost');
    assert.equal(event?.message, 'Bound claim has lost its PersistentVolume. Data on the volume is lost!');
    assert.equal(event.count, 1);
  });

  test('a bound claim whose volume belongs to another claim is Lost and says so', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('v', '1Gi');
    cluster.addClaim('c', '', { volumeName: 'v' });
    await cluster.claimInPhase('c', 'Bound');
    updateObject(cluster.client, resources.volumes, cluster.volume('v')!, (copy) => {
      copy.spec.claimRef = { namespace: 'default', name: 'c', uid: 'another' };
    });
    await cluster.claimInPhase('c', 'Lost');
    const event = await cluster.eventAbout('c', 'ClaimMisbound');
    assert.equal(event.message, 'Two claims are bound to the same volume, this one is bound incorrectly');
  });

  test('a volume made for a claim that is gone by now is Released and deleted', async () => {
    await using cluster = new Cluster();
    const claim = cluster.addClaim('c', 'fast');
    await cluster.eventAbout('c', 'ExternalProvisioning');
    cluster.deleteClaim('c');
    await cluster.until('no claim', () => cluster.claim('c') === undefined);
    using provisioner = new ProvisionerDouble(cluster.client);
    const phases: (string | undefined)[] = [];
    cluster.client.subscribe(resources.volumes, ({ object }) => {
      phases.push((object['status'] as { phase?: string } | undefined)?.phase);
    });
    const { metadata } = provisioner.createVolume(claim);
    await cluster.until('no volume', () => cluster.volume(metadata.name) === undefined);
    assert.deepEqual(phases.slice(0, 2), ['Pending', 'Released']);
  });

  for (const { policy, reason, message } of [
    {
      policy: 'Delete',
      reason: 'VolumeFailedDelete',
      message: 'error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
    },
    { policy: 'Recycle', reason: 'VolumeFailedRecycle', message: 'No recycler plugin found for the volume!' },
  ]) {
    test(`a released volume with policy ${policy} that nobody can carry out has Failed`, async () => {
      await using cluster = new Cluster();
      cluster.addVolume('v', '1Gi', { persistentVolumeReclaimPolicy: policy });
      cluster.addClaim('c', '', { volumeName: 'v' });
      await cluster.claimInPhase('c', 'Bound');
      cluster.deleteClaim('c');
      const volume = await cluster.volumeInPhase('v', 'Failed');
      assert.equal(volume.status?.message, message);
      const event = await cluster.eventAbout('v', reason);
      assert.equal(event.type, 'Warning');
      assert.equal(event.message, message);
    });
  }

  test('a volume whose claim went to another one is set free again', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('taken', '1Gi');
    const { metadata } = cluster.addClaim('c', '', { volumeName: 'taken' });
    await cluster.claimInPhase('c', 'Bound');
    cluster.addVolume('astray', '1Gi', { claimRef: { namespace: 'default', name: 'c', uid: metadata.uid } });
    const volume = await cluster.volumeInPhase('astray', 'Available');
    assert.equal(volume.spec.claimRef?.name, 'c');
    assert.equal(volume.spec.claimRef.uid, undefined);
  });

  test('once settled, resyncs write nothing but event counts', async () => {
    await using cluster = new Cluster({ resyncMs: 20 });
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('bound', 'fast');
    cluster.addClaim('late', 'late');
    cluster.addPod('p', ['late']);
    cluster.addVolume('free', '1Gi', { storageClassName: 'x' });
    cluster.addVolume('kept', '1Gi', { storageClassName: 'y' });
    cluster.addClaim('gone', 'y');
    cluster.addClaim('pending', '');
    cluster.addPod('stuck', ['pending']);
    await cluster.claimInPhase('gone', 'Bound');
    cluster.deleteClaim('gone');
    await cluster.volumeInPhase('kept', 'Released');
    await cluster.claimInPhase('bound', 'Bound');
    await cluster.until('a running pod', () => cluster.pod('p')?.status?.phase === 'Running');
    const resyncs = (): number => cluster.event('pending', 'FailedBinding')?.count ?? 0;
    await cluster.until('the first resyncs', () => resyncs() >= 3);

    const writes: string[] = [];
    for (const resource of Object.values(resources)) {
      cluster.client.subscribe(resource, ({ type, object }) => {
        writes.push(`${type} ${resource.plural} ${object.metadata.name}`);
      });
    }
    const before = resyncs();
    await cluster.until('ten more resyncs', () => resyncs() >= before + 10);
    assert.deepEqual(writes, []);
  });
});
