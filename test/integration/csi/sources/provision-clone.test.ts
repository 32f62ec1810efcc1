/** Volumes cloned from another claim. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
  VolumeMode,
} from '../../../../src/provision/objects.ts';
import { conflictMessage } from '../../../support/fakes/api-server.ts';
import {
  assertFailed,
  assertNoCreate,
  driverName,
  makeClaim,
  makeClass,
  Rig,
  uid,
  volumeOf,
} from '../../../support/csi-rig.ts';

const finalizer = 'provisioner.storage.kubernetes.io/cloning-protection';
const cloner = ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'];
const sourcePath = '/api/v1/namespaces/ns1/persistentvolumeclaims/src';
const volumePath = '/api/v1/persistentvolumes/pv-src';
const wrapped = 'error getting handle for DataSource Type PersistentVolumeClaim by Name src: ';

type Change<T> = (object: T) => T;

interface Setup {
  controller?: string[];
  claim?: PersistentVolumeClaim;
  storageClass?: StorageClass;
  source?: Change<PersistentVolumeClaim> | 'missing';
  volume?: Change<PersistentVolume> | 'missing';
}

const clone = makeClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } });

function makeSource(): PersistentVolumeClaim {
  return {
    metadata: { name: 'src', namespace: 'ns1', uid: 'uid-src', resourceVersion: '9' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '5Gi' } },
      storageClassName: 'sc',
      volumeMode: 'Filesystem',
      volumeName: 'pv-src',
    },
    status: { phase: 'Bound' },
  };
}

function makeSourceVolume(): PersistentVolume {
  return {
    metadata: { name: 'pv-src', uid: 'uid-pv-src' },
    spec: {
      csi: { driver: driverName, volumeHandle: 'vol-src' },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns1', name: 'src', uid: 'uid-src' },
      volumeMode: 'Filesystem',
    },
    status: { phase: 'Bound' },
  };
}

/** A rig that holds the source as this setup describes it, in cache and API. */
async function startRig(setup: Setup = {}): Promise<Rig> {
  const rig = await Rig.start({ controller: setup.controller ?? cloner });
  if (setup.source !== 'missing') {
    const source = (setup.source ?? ((same) => same))(makeSource());
    rig.claims.set(rig.api.put(sourcePath, source) as unknown as PersistentVolumeClaim);
  }
  if (setup.volume !== 'missing') rig.api.put(volumePath, (setup.volume ?? ((same) => same))(makeSourceVolume()));
  return rig;
}

function finalizers(rig: Rig): string[] {
  return rig.api.get(sourcePath)?.metadata.finalizers ?? [];
}

describe('CsiProvisioner, clones', () => {
  test('the source is protected, then cloned', async () => {
    await using rig = await startRig();
    rig.driver.next('CreateVolume', ({ request }) => {
      assert.deepEqual(finalizers(rig), [finalizer], 'protected before CreateVolume');
      return { volume: { volume_id: 'vol-1', content_source: request['volume_content_source'] } };
    });
    volumeOf(await rig.provision(clone));
    assert.deepEqual(rig.createRequest['volume_content_source'], { type: 'volume', volume: { volume_id: 'vol-src' } });
    assert.deepEqual(finalizers(rig), [finalizer], 'and stays so');
    assert.deepEqual(rig.api.log, [`GET ${volumePath}`, `GET ${sourcePath}`, `PUT ${sourcePath}`]);
  });

  test('a source that has the finalizer is not written', async () => {
    const source: Change<PersistentVolumeClaim> = (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: ['kubernetes.io/pvc-protection', finalizer] },
    });
    await using rig = await startRig({ source });
    volumeOf(await rig.provision(clone));
    assert.deepEqual(rig.api.log, [`GET ${volumePath}`]);
  });

  test('the finalizer goes behind those that are there, and the live object is written, not the cached one', async () => {
    await using rig = await startRig();
    const live = { ...makeSource(), spec: { ...makeSource().spec, unknown: 'kept' } };
    rig.api.put(sourcePath, { ...live, metadata: { ...live.metadata, finalizers: ['kubernetes.io/pvc-protection'] } });
    volumeOf(await rig.provision(clone));
    assert.deepEqual(finalizers(rig), ['kubernetes.io/pvc-protection', finalizer]);
    assert.equal((rig.api.get(sourcePath)?.['spec'] as { unknown?: string }).unknown, 'kept');
  });

  const refused: (Setup & { name: string; message: string; state?: string })[] = [
    {
      name: 'no CLONE_VOLUME',
      controller: ['CREATE_DELETE_VOLUME'],
      message: 'CSI driver does not support clone operations: controller CLONE_VOLUME capability is not reported',
      state: 'finished',
    },
    {
      name: 'source missing',
      source: 'missing',
      message: `${wrapped}error getting PVC src (namespace "ns1") from api server: persistentvolumeclaim "src" not found`,
    },
    {
      name: 'source pending',
      source: (source) => ({ ...source, status: { phase: 'Pending' } }),
      message: `${wrapped}the PVC DataSource src must have a status of Bound.  Got {Pending [] map[] [] map[] map[] <nil> nil}`,
    },
    {
      name: 'source lost',
      source: (source) => ({ ...source, status: { phase: 'Lost' } }),
      message: `${wrapped}the PVC DataSource src must have a status of Bound.  Got {Lost [] map[] [] map[] map[] <nil> nil}`,
    },
    {
      name: 'source being deleted, protected or not',
      source: (source) => ({
        ...source,
        metadata: { ...source.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer] },
      }),
      message: `${wrapped}the PVC DataSource src is currently being deleted`,
    },
    {
      name: 'source without class',
      source: ({ spec: { storageClassName: _, ...spec }, ...source }) => ({ ...source, spec }),
      message: `${wrapped}the source PVC (src) storageclass cannot be empty`,
    },
    {
      name: 'claim without class',
      claim: {
        ...clone,
        spec: { accessModes: ['ReadWriteOnce'], dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } },
      },
      message: `${wrapped}the requested PVC (c1) storageclass cannot be empty`,
    },
    {
      name: 'claim smaller than its source',
      claim: makeClaim({ ...clone.spec, resources: { requests: { storage: '4Gi' } } }),
      message: `${wrapped}error, new PVC request must be greater than or equal in size to the specified PVC data source, requested 4294967296 but source is 5368709120`,
    },
    {
      name: 'source without volume name',
      source: ({ spec: { volumeName: _, ...spec }, ...source }) => ({ ...source, spec }),
      message: `${wrapped}volume name is empty in source PVC src`,
    },
    ...invalidVolumes(),
    ...([undefined, 'Filesystem'] as const).map((mode) => ({
      name: `claim Block, source volume ${mode ?? 'without mode'}`,
      claim: makeClaim({ ...clone.spec, volumeMode: 'Block' }),
      volume: withMode(mode),
      message: `${wrapped}the source PVC and destination PVCs must have the same volume mode for cloning.  Source is Filesystem, but new PVC requested Block`,
    })),
    ...[undefined, 'Filesystem'].map((mode) => ({
      name: `claim ${mode ?? 'without mode'}, source volume Block`,
      claim: mode === undefined ? withoutMode() : clone,
      volume: withMode('Block'),
      message: `${wrapped}the source PVC and destination PVCs must have the same volume mode for cloning.  Source is Block, but new PVC requested Filesystem`,
    })),
  ];
  for (const { name, message, state = 'no-change', ...setup } of refused) {
    test(`${name} is refused, and the source not touched`, async () => {
      await using rig = await startRig(setup);
      const before = rig.api.get(sourcePath)?.metadata.finalizers;
      const outcome = await rig.provision(setup.claim ?? clone, setup.storageClass ?? makeClass());
      assertFailed(outcome, state, message);
      assert.equal(outcome.error?.message, message);
      assertNoCreate(rig);
      assert.deepEqual(rig.api.get(sourcePath)?.metadata.finalizers, before);
    });
  }

  const accepted: (Setup & { name: string })[] = [
    {
      name: 'a source of another class',
      source: (source) => ({ ...source, spec: { ...source.spec, storageClassName: 'other' } }),
    },
    {
      name: 'a claim larger than its source',
      claim: makeClaim({ ...clone.spec, resources: { requests: { storage: '6Gi' } } }),
    },
    {
      name: 'a group on the kind',
      claim: makeClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'src', apiGroup: 'x.io' } }),
    },
  ];
  for (const { name, ...setup } of accepted) {
    test(`${name} is cloned`, async () => {
      await using rig = await startRig(setup);
      volumeOf(await rig.provision(setup.claim ?? clone));
      assert.deepEqual(rig.createRequest['volume_content_source'], {
        type: 'volume',
        volume: { volume_id: 'vol-src' },
      });
    });
  }

  test('an answer without content source is deleted again', async () => {
    await using rig = await startRig();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'vol-1' } });
    const outcome = await rig.provision(clone);
    assertFailed(outcome, 'in-background', 'volume content source missing');
    assert.deepEqual(
      rig.driver.callsOf('DeleteVolume').map(({ request }) => request),
      [{ volume_id: 'vol-1' }],
    );
    assert.deepEqual(finalizers(rig), [finalizer]);
  });

  test('a failed cleanup is part of the error', async () => {
    await using rig = await startRig();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'vol-1' } });
    rig.driver.always('DeleteVolume', () => Promise.reject(new Error('no')));
    const outcome = await rig.provision(clone);
    assert.equal(
      outcome.error?.message,
      `volume content source missing. cleanup of volume pvc-${uid} failed, volume is orphaned: rpc error: code = Unknown desc = Error: no`,
    );
  });
});

describe('CsiProvisioner, protecting the source of a clone', () => {
  const conflict = {
    method: 'PUT',
    path: sourcePath,
    code: 409,
    reason: 'Conflict',
    message: conflictMessage(sourcePath),
  };

  test('a conflict is read again within the attempt', async () => {
    await using rig = await startRig();
    rig.api.fail(conflict);
    volumeOf(await rig.provision(clone));
    assert.deepEqual(finalizers(rig), [finalizer]);
    assert.equal(rig.api.log.filter((line) => line === `PUT ${sourcePath}`).length, 2);
  });

  test('many clones of one source all succeed at the first attempt', async () => {
    await using rig = await startRig();
    const claims = Array.from({ length: 20 }, (_, index) =>
      makeClaim(clone.spec, { name: `c${index}`, uid: `uid-${index}` }),
    );
    const outcomes = await Promise.all(claims.map((claim) => rig.provision(claim)));
    assert.deepEqual(
      outcomes.map(({ error }) => error?.message).filter((message) => message !== undefined),
      [],
    );
    assert.deepEqual(finalizers(rig), [finalizer]);
  });

  test('conflicts without end fail the attempt with the plain text of the API', async () => {
    await using rig = await startRig();
    rig.api.fail({ ...conflict, times: 100 });
    const outcome = await rig.provision(clone);
    assertFailed(outcome, 'no-change', conflict.message);
    assert.equal(outcome.error?.message, conflict.message);
    assertNoCreate(rig);
  });

  test('a forbidden write fails the attempt with the plain text of the API', async () => {
    await using rig = await startRig();
    rig.api.fail({ ...conflict, code: 403, reason: 'Forbidden', message: 'claims are not for you' });
    const outcome = await rig.provision(clone);
    assertFailed(outcome, 'no-change', 'claims are not for you');
    assertNoCreate(rig);
  });

  test('a source that was replaced under its name is not protected', async () => {
    await using rig = await startRig();
    rig.api.put(sourcePath, { ...makeSource(), metadata: { name: 'src', namespace: 'ns1', uid: 'another' } });
    const outcome = await rig.provision(clone);
    assertFailed(outcome, 'no-change', 'the PVC DataSource src was replaced');
    assert.deepEqual(finalizers(rig), []);
    assertNoCreate(rig);
  });
});

/** Everything that makes the source's volume unusable has one text. */
function invalidVolumes(): (Setup & { name: string; message: string })[] {
  const withSpec = (spec: Partial<PersistentVolume['spec']>): Change<PersistentVolume> => {
    return (volume) => ({ ...volume, spec: { ...volume.spec, ...spec } });
  };
  const { claimRef } = makeSourceVolume().spec;
  const variants: Record<string, Setup['volume']> = {
    gone: 'missing',
    'not CSI': ({ spec: { csi: _, ...spec }, ...volume }) => ({ ...volume, spec }),
    'of another driver': withSpec({ csi: { driver: 'other', volumeHandle: 'vol-src' } }),
    'without claimRef': ({ spec: { claimRef: _, ...spec }, ...volume }) => ({ ...volume, spec }),
    'bound to another UID': withSpec({ claimRef: { ...claimRef, uid: 'x' } }),
    'bound to another namespace': withSpec({ claimRef: { ...claimRef, namespace: 'x' } }),
    'bound to another name': withSpec({ claimRef: { ...claimRef, name: 'x' } }),
    released: (volume) => ({ ...volume, status: { phase: 'Released' } }),
  };
  return Object.entries(variants).map(([name, volume]) => ({
    name: `source volume ${name}`,
    ...(volume === undefined ? {} : { volume }),
    message: `${wrapped}claim in dataSource not bound or invalid`,
  }));
}

function withMode(mode: VolumeMode | undefined): Change<PersistentVolume> {
  return ({ spec: { volumeMode: _, ...spec }, ...volume }) => ({
    ...volume,
    spec: { ...spec, ...(mode === undefined ? {} : { volumeMode: mode }) },
  });
}

function withoutMode(): PersistentVolumeClaim {
  const { volumeMode: _, ...spec } = clone.spec;
  return { ...clone, spec };
}
