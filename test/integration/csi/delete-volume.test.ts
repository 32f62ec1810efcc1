/** What the driver is sent to delete a volume: which secrets, and which refusals. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { driverMigration } from '../../../src/csi/migration/driver-migration.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { IgnoredError, VolumeInUseError } from '../../../src/provision/provisioner.ts';
import { recordedLogger, type LogLine } from '../../support/fakes/recorded-logger.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { base64, driverName, makeClass, Rig, type RigOptions } from '../../support/csi-rig.ts';

const nameKey = 'volume.kubernetes.io/provisioner-deletion-secret-name';
const namespaceKey = 'volume.kubernetes.io/provisioner-deletion-secret-namespace';
const noSecret = { [nameKey]: '', [namespaceKey]: '' };
const signal = new AbortController().signal;

function makeVolume(
  annotations: Record<string, string> = noSecret,
  spec: Partial<PersistentVolume['spec']> = {},
): PersistentVolume {
  return {
    metadata: { name: 'pv-1', uid: 'uid-pv-1', annotations },
    spec: {
      csi: { driver: driverName, volumeHandle: 'vol-1' },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns1', name: 'c1', uid: 'u' },
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'sc',
      ...spec,
    },
    status: { phase: 'Released' },
  };
}

async function startRig(options: RigOptions = {}): Promise<Rig> {
  const rig = await Rig.start({ controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'], ...options });
  for (const [namespace, name] of [
    ['ns', 's'],
    ['ns1', 'class-secret'],
  ] as const) {
    const path = `/api/v1/namespaces/${namespace}/secrets/${name}`;
    rig.api.put(path, { metadata: { name, namespace }, data: { from: base64(name) } });
  }
  return rig;
}

function deletes(rig: Rig): unknown[] {
  return rig.driver.callsOf('DeleteVolume').map(({ request }) => request);
}

const classPair = (name: string, namespace: string): Record<string, string> => ({
  'csi.storage.k8s.io/provisioner-secret-name': name,
  'csi.storage.k8s.io/provisioner-secret-namespace': namespace,
});

describe('CsiProvisioner.delete', () => {
  test('the driver gets the handle and nothing else', async () => {
    await using rig = await startRig();
    await rig.provisioner.delete(makeVolume(), { signal });
    assert.deepEqual(deletes(rig), [{ volume_id: 'vol-1' }]);
    assert.deepEqual(rig.api.requests, []);
    assert.deepEqual(rig.events, []);
  });

  test('an empty handle is sent as it is', async () => {
    await using rig = await startRig();
    await rig.provisioner.delete(makeVolume(noSecret, { csi: { driver: driverName, volumeHandle: '' } }), { signal });
    assert.deepEqual(deletes(rig), [{}]); // as on the wire, where an empty text is left out
  });

  interface SecretCase {
    name: string;
    annotations: Record<string, string>;
    parameters?: Record<string, string>;
    spec?: Partial<PersistentVolume['spec']>;
    /** Name of the secret whose data is sent; absent: none. */
    sent?: string;
    /** Secret reads. */
    reads: string[];
  }

  const classSecret = classPair('class-secret', 'ns1');
  const classRead = ['GET /api/v1/namespaces/ns1/secrets/class-secret'];
  const cases: SecretCase[] = [
    {
      name: 'annotations name a secret',
      annotations: { [nameKey]: 's', [namespaceKey]: 'ns' },
      parameters: classSecret,
      sent: 's',
      reads: ['GET /api/v1/namespaces/ns/secrets/s'],
    },
    {
      name: 'annotations name a missing secret',
      annotations: { [nameKey]: 'gone', [namespaceKey]: 'ns' },
      reads: ['GET /api/v1/namespaces/ns/secrets/gone'],
    },
    {
      name: 'namespace empty',
      annotations: { [nameKey]: 's', [namespaceKey]: '' },
      parameters: classSecret,
      reads: [],
    },
    {
      name: 'only the name key',
      annotations: { [nameKey]: 's' },
      parameters: classSecret,
      sent: 'class-secret',
      reads: classRead,
    },
    { name: 'both keys empty', annotations: noSecret, parameters: classSecret, reads: [] },
    {
      name: 'no keys, default pair of the class',
      annotations: {},
      parameters: { 'csi.storage.k8s.io/secret-name': 'class-secret', 'csi.storage.k8s.io/secret-namespace': 'ns1' },
      sent: 'class-secret',
      reads: classRead,
    },
    { name: 'no keys, class gone', annotations: {}, spec: { storageClassName: 'gone' }, reads: [] },
    {
      name: 'no keys, no class name',
      annotations: {},
      spec: { storageClassName: '' },
      parameters: classSecret,
      reads: [],
    },
    {
      name: 'no keys, class by the beta annotation',
      annotations: { 'volume.beta.kubernetes.io/storage-class': 'sc' },
      spec: { storageClassName: 'gone' },
      parameters: classSecret,
      sent: 'class-secret',
      reads: classRead,
    },
    {
      name: 'no keys, templates of volume and claim',
      annotations: {},
      parameters: classPair('class-secret', '${pvc.namespace}'),
      sent: 'class-secret',
      reads: classRead,
    },
    { name: 'no keys, class names no secret', annotations: {}, parameters: {}, reads: [] },
  ];
  for (const { name, annotations, parameters = {}, spec = {}, sent, reads } of cases) {
    test(`${name}: ${sent === undefined ? 'no secrets' : `the secret ${sent}`}`, async () => {
      await using rig = await startRig();
      rig.classes.set(makeClass(parameters));
      await rig.provisioner.delete(makeVolume(annotations, spec), { signal });
      assert.deepEqual(deletes(rig), [
        { volume_id: 'vol-1', ...(sent === undefined ? {} : { secrets: { from: sent } }) },
      ]);
      assert.deepEqual(rig.api.log, reads);
    });
  }

  test('a forbidden secret is logged and the deletion goes on', async () => {
    const lines: LogLine[] = [];
    await using rig = await startRig({ logger: recordedLogger(lines) });
    const path = '/api/v1/namespaces/ns/secrets/s';
    rig.api.fail({ method: 'GET', path, code: 403, reason: 'Forbidden', message: 'secrets are not for you' });
    await rig.provisioner.delete(makeVolume({ [nameKey]: 's', [namespaceKey]: 'ns' }), { signal });
    assert.deepEqual(deletes(rig), [{ volume_id: 'vol-1' }]);
    const errors = lines.filter(({ level }) => level === 'error').map(({ message }) => message);
    assert.equal(errors.length, 2);
    assert.match(errors[0] ?? '', /^Not permitted to use a resource/);
    assert.match(errors[1] ?? '', /secret/);
  });

  test('without a claim reference no secret is looked for', async () => {
    await using rig = await startRig();
    rig.classes.set(makeClass(classSecret));
    const { claimRef: _, ...spec } = makeVolume().spec;
    await rig.provisioner.delete({ ...makeVolume({}), spec }, { signal });
    assert.deepEqual(deletes(rig), [{ volume_id: 'vol-1' }]);
  });

  const broken = [
    {
      name: 'half a pair',
      parameters: { 'csi.storage.k8s.io/provisioner-secret-name': 's' },
      why: 'failed to get name and namespace template from params: either name and namespace for Provisioner secrets specified, Both must be specified',
    },
    {
      name: 'a template with a claim annotation',
      parameters: classPair("${pvc.annotations['a']}", 'ns'),
      why: `error resolving value "\${pvc.annotations['a']}": invalid tokens: ["pvc.annotations['a']"]`,
    },
  ];
  for (const { name, parameters, why } of broken) {
    test(`${name} fails the deletion`, async () => {
      await using rig = await startRig();
      rig.classes.set(makeClass(parameters));
      await assert.rejects(rig.provisioner.delete(makeVolume({}), { signal }), {
        message: `failed to get secretreference for volume pv-1: ${why}`,
      });
      assert.deepEqual(deletes(rig), []);
    });
  }

  test('a secret that is not UTF-8 never leaves the process', async () => {
    await using rig = await startRig();
    const data = { key: Buffer.from([0xff, 0xfe]).toString('base64') };
    rig.api.put('/api/v1/namespaces/ns/secrets/s', { metadata: { name: 's' }, data });
    await assert.rejects(rig.provisioner.delete(makeVolume({ [nameKey]: 's', [namespaceKey]: 'ns' }), { signal }), {
      message: 'rpc error: code = Internal desc = grpc: error while marshaling: string field contains invalid UTF-8',
    });
    assert.deepEqual(deletes(rig), []);
  });

  for (const [name, code] of [
    ['NotFound', status.NOT_FOUND],
    ['FailedPrecondition', status.FAILED_PRECONDITION],
  ] as const) {
    test(`${name} is a failure`, async () => {
      await using rig = await startRig();
      rig.driver.next('DeleteVolume', new DriverFailure(code, 'x'));
      await assert.rejects(rig.provisioner.delete(makeVolume(), { signal }), { code });
      await rig.provisioner.delete(makeVolume(), { signal });
      assert.equal(deletes(rig).length, 2);
    });
  }

  test('a slow driver runs into the timeout', async () => {
    await using rig = await startRig({ timeoutMs: 150 });
    rig.driver.next('DeleteVolume', () => new Promise<object>(() => undefined));
    await assert.rejects(rig.provisioner.delete(makeVolume(), { signal }), {
      message: 'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
    });
  });

  test('a driver that cannot delete is not asked, nor is the secret read', async () => {
    await using rig = await startRig({ controller: [] });
    await assert.rejects(rig.provisioner.delete(makeVolume({ [nameKey]: 's', [namespaceKey]: 'ns' }), { signal }), {
      message:
        'CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported',
    });
    assert.deepEqual(rig.api.requests, []);
  });

  test('a volume that is not CSI is refused', async () => {
    await using rig = await startRig();
    const { csi: _, ...spec } = makeVolume().spec;
    await assert.rejects(rig.provisioner.delete({ ...makeVolume(), spec }, { signal }), { message: 'invalid CSI PV' });
  });

  test('a volume of another node is ignored', async () => {
    const node = {
      nodeName: 'n1',
      ownsClaim: () => Promise.resolve(true),
      ownsVolume: () => false,
      forgetClaim: () => undefined,
      roomFreed: () => undefined,
    };
    await using rig = await startRig({ controller: [], settings: { node } });
    await assert.rejects(
      rig.provisioner.delete(makeVolume(), { signal }),
      new IgnoredError('PV was not provisioned on this node'),
    );
  });

  test('whether an in-tree volume is of this node is decided by its topology in the words of the driver', async () => {
    const judged: unknown[] = [];
    const node = {
      nodeName: 'n1',
      ownsClaim: () => Promise.resolve(true),
      ownsVolume: ({ spec }: PersistentVolume) => {
        judged.push(spec.nodeAffinity?.required?.nodeSelectorTerms);
        return true;
      },
      forgetClaim: () => undefined,
      roomFreed: () => undefined,
    };
    await using rig = await startRig({
      settings: { node, driverName: 'ebs.csi.aws.com', migration: driverMigration('ebs.csi.aws.com') },
    });
    const { csi: _, ...spec } = makeVolume().spec;
    const labels = { 'topology.kubernetes.io/zone': 'us-west-2a' };
    const volume = { ...makeVolume(), spec: { ...spec, awsElasticBlockStore: { volumeID: 'vol-0' } } };
    await rig.provisioner.delete({ ...volume, metadata: { ...volume.metadata, labels } }, { signal });
    const expression = { key: 'topology.ebs.csi.aws.com/zone', operator: 'In', values: ['us-west-2a'] };
    assert.deepEqual(judged, [[{ matchExpressions: [expression] }]]);
    assert.deepEqual(deletes(rig), [{ volume_id: 'vol-0' }]);
  });

  for (const { parameters, allowed, outcome } of [
    { parameters: { 'openstorage.io/auth-secret-name': 'class-secret' }, allowed: 'ns1', outcome: 'class-secret' },
    { parameters: { 'openstorage.io/auth-secret-name': 'class-secret' }, allowed: undefined, outcome: undefined },
  ]) {
    test(`an old in-tree volume finds ${outcome ?? 'no'} secret through its translated class`, async () => {
      await using rig = await startRig({
        settings: { driverName: 'pxd.portworx.com', migration: driverMigration('pxd.portworx.com') },
      });
      const namespace = allowed === undefined ? {} : { 'openstorage.io/auth-secret-namespace': allowed };
      rig.classes.set(makeClass({ ...parameters, ...namespace }, { provisioner: 'kubernetes.io/portworx-volume' }));
      const { csi: _, ...spec } = makeVolume().spec;
      const volume = { ...makeVolume({}), spec: { ...spec, portworxVolume: { volumeID: '1' } } };
      const deletion = rig.provisioner.delete(volume, { signal });
      if (outcome === undefined) {
        await assert.rejects(deletion, { message: /^failed to get secretreference for volume pv-1: / });
        assert.deepEqual(deletes(rig), []);
      } else {
        await deletion;
        assert.deepEqual(deletes(rig), [{ volume_id: '1', secrets: { from: outcome } }]);
      }
    });
  }

  test('a volume of another driver is refused, and nothing is sent, whatever its handle', async () => {
    await using rig = await startRig();
    const other = makeVolume(
      { [nameKey]: 's', [namespaceKey]: 'ns' },
      { csi: { driver: 'new', volumeHandle: 'vol-1' } },
    );
    assert.equal(rig.provisioner.ownsSource(other), false);
    await assert.rejects(rig.provisioner.delete(other, { signal }), {
      message: 'the storage of the PV is of CSI driver new',
    });
    assert.deepEqual(deletes(rig), []);
    assert.deepEqual(rig.api.log, []);
  });

  test('an in-tree volume is deleted by its translated handle', async () => {
    const migration = {
      translateClass: () => makeClass(),
      toInTree: (volume: PersistentVolume) => volume,
      toCsi: (volume: PersistentVolume) => ({
        ...volume,
        spec: { ...volume.spec, csi: { driver: driverName, volumeHandle: 'translated' } },
      }),
      hasSource: () => false,
      storageKeys: () => [],
      handleKey: (handle: string) => handle,
    };
    await using rig = await startRig({ settings: { migration } });
    await rig.provisioner.delete(makeVolume(), { signal });
    assert.deepEqual(deletes(rig), [{ volume_id: 'translated' }]);
    assert.equal(rig.finishedCalls[0]?.migrated, true);
  });
});

describe('CsiProvisioner, volumes that are still attached', () => {
  const attachment = (volumeName: string | undefined, name = 'va') => ({
    metadata: { name },
    spec: { nodeName: 'n1', source: volumeName === undefined ? {} : { persistentVolumeName: volumeName } },
  });
  const message = 'persistentvolume pv-1 is still attached to node n1, waiting for detach';

  test('are never deleted', async () => {
    await using rig = await startRig();
    rig.attachments.set(attachment('pv-1'));
    await assert.rejects(
      rig.provisioner.delete(makeVolume({ [nameKey]: 's', [namespaceKey]: 'ns' }), { signal }),
      new VolumeInUseError(message),
    );
    assert.deepEqual(deletes(rig), []);
    assert.deepEqual(rig.api.log, ['GET /api/v1/namespaces/ns/secrets/s']);
  });

  test('are held back, with one event', async () => {
    await using rig = await startRig();
    rig.attachments.set(attachment('pv-1'));
    assert.equal(rig.provisioner.shouldDelete(makeVolume()), false);
    assert.equal(rig.provisioner.shouldDelete(makeVolume()), false);
    const about = { apiVersion: 'v1', kind: 'PersistentVolume', name: 'pv-1', uid: 'uid-pv-1' };
    assert.deepEqual(rig.events, [{ about, type: 'Normal', reason: 'VolumeDelete', message }]);
    rig.attachments.delete('va');
    assert.equal(rig.provisioner.shouldDelete(makeVolume()), true);
    rig.attachments.set(attachment('pv-1'));
    assert.equal(rig.provisioner.shouldDelete(makeVolume()), false);
    assert.equal(rig.events.length, 2, 'a new wait is told anew');
  });

  test('the wait of one volume does not hide that of another', async () => {
    await using rig = await startRig();
    rig.attachments.set(attachment('pv-1'));
    rig.attachments.set(attachment('pv-2', 'va2'));
    const second = { ...makeVolume(), metadata: { name: 'pv-2', uid: 'uid-pv-2' } };
    for (const volume of [makeVolume(), second, makeVolume(), second]) rig.provisioner.shouldDelete(volume);
    assert.deepEqual(
      rig.events.map(({ about }) => about.name),
      ['pv-1', 'pv-2'],
    );
  });

  for (const [name, volume] of [
    ['bound', { ...makeVolume(), status: { phase: 'Bound' } }],
    ['to be retained', makeVolume(noSecret, { persistentVolumeReclaimPolicy: 'Retain' })],
  ] as const) {
    test(`a volume that is ${name} does not wait`, async () => {
      await using rig = await startRig();
      rig.attachments.set(attachment('pv-1'));
      assert.equal(rig.provisioner.shouldDelete(volume), true);
      assert.deepEqual(rig.events, []);
    });
  }

  test('an attachment of an inline volume holds nothing back', async () => {
    await using rig = await startRig();
    rig.attachments.set(attachment(undefined));
    assert.equal(rig.provisioner.shouldDelete(makeVolume()), true);
    await rig.provisioner.delete(makeVolume(), { signal });
    assert.equal(deletes(rig).length, 1);
  });

  test('without a cache of attachments nothing is checked', async () => {
    await using rig = await startRig({ settings: { attachments: undefined } });
    assert.equal(rig.provisioner.shouldDelete(makeVolume()), true);
    await rig.provisioner.delete(makeVolume(), { signal });
    assert.equal(deletes(rig).length, 1);
  });
});
