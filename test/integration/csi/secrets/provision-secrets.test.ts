/** Secret references, templates, reading the provisioner secret. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import {
  assertFailed,
  assertNoCreate,
  base64,
  makeClaim,
  makeClass,
  Rig,
  uid,
  volumeOf,
} from '../../../support/csi-rig.ts';
import { DriverFailure } from '../../../support/fakes/recording-driver.ts';

const prefix = 'csi.storage.k8s.io/';
const deletionName = 'volume.kubernetes.io/provisioner-deletion-secret-name';
const deletionNamespace = 'volume.kubernetes.io/provisioner-deletion-secret-namespace';
const modifyName = 'volume.kubernetes.io/controller-modify-secret-name';
const modifyNamespace = 'volume.kubernetes.io/controller-modify-secret-namespace';

/** A pair of keys; `kind` is empty for the default pair. */
function pair(kind: string, name?: string, namespace?: string): Record<string, string> {
  const beginning = kind === '' ? prefix : `${prefix}${kind}-`;
  return {
    ...(name === undefined ? {} : { [`${beginning}secret-name`]: name }),
    ...(namespace === undefined ? {} : { [`${beginning}secret-namespace`]: namespace }),
  };
}

function putSecret(rig: Rig, namespace: string, name: string, data: Record<string, string>): void {
  rig.api.put(`/api/v1/namespaces/${namespace}/secrets/${name}`, { metadata: { name, namespace }, data });
}

describe('CsiProvisioner, secrets', () => {
  test('the provisioner secret is sent and remembered for deletion', async () => {
    await using rig = await Rig.start();
    putSecret(rig, 'ns', 's', { user: base64('u') });
    const volume = volumeOf(await rig.provision(makeClaim(), makeClass(pair('provisioner', 's', 'ns'))));
    assert.deepEqual(rig.createRequest['secrets'], { user: 'u' });
    assert.deepEqual(volume.metadata.annotations, { [deletionName]: 's', [deletionNamespace]: 'ns' });
    assert.deepEqual(rig.api.log, ['GET /api/v1/namespaces/ns/secrets/s']);
  });

  test('a missing secret hides a bad template', async () => {
    await using rig = await Rig.start();
    const parameters = { ...pair('provisioner', 's', 'ns'), ...pair('node-stage', 'bad name', 'ns') };
    const outcome = await rig.provision(makeClaim(), makeClass(parameters));
    assertFailed(outcome, 'no-change', 'error getting secret s in namespace ns: secrets "s" not found');
    assertNoCreate(rig);
  });

  const half =
    'failed to get name and namespace template from params: either name and namespace for Provisioner secrets specified, Both must be specified';
  const empty =
    'failed to get name and namespace template from params: Provisioner secrets specified in parameters but value of either namespace or name is empty';
  const both =
    'failed to get name and namespace template from params: Provisioner secrets specified in parameters with both "csi" and "csi.storage.k8s.io/" keys';
  const refused: { name: string; parameters: Record<string, string>; message: string }[] = [
    { name: 'only a name', parameters: pair('provisioner', 's'), message: half },
    { name: 'only a namespace', parameters: pair('provisioner', undefined, 'ns'), message: half },
    { name: 'an empty name', parameters: pair('provisioner', '', 'ns'), message: empty },
    { name: 'an empty namespace', parameters: pair('provisioner', 's', ''), message: empty },
    { name: 'both empty', parameters: pair('provisioner', '', ''), message: empty },
    {
      name: 'two names',
      parameters: { ...pair('provisioner', 's', 'ns'), csiProvisionerSecretName: 's' },
      message: both,
    },
    {
      name: 'two names and two namespaces',
      parameters: {
        ...pair('provisioner', 's', 'ns'),
        csiProvisionerSecretName: 's',
        csiProvisionerSecretNamespace: 'ns',
      },
      message: both,
    },
    {
      name: 'half a default pair that somebody falls back to',
      parameters: { ...pair('', 's'), ...pair('provisioner', 's', 'ns') },
      message:
        'failed to get default name and namespace template from params: either name and namespace for Default secrets specified, Both must be specified',
    },
    {
      name: 'an annotation that the claim lacks',
      parameters: pair('provisioner', "a-${pvc.annotations['k']}", 'ns'),
      message: `error resolving value "a-\${pvc.annotations['k']}": invalid tokens: ["pvc.annotations['k']"]`,
    },
    {
      name: 'a claim name in a namespace template',
      parameters: pair('provisioner', 's', '${pvc.name}'),
      message: 'error resolving value "${pvc.name}": invalid tokens: ["pvc.name"]',
    },
    {
      name: 'a bad name',
      parameters: pair('node-stage', 'bad name', 'ns'),
      message: '"bad name" is not a valid secret name',
    },
    {
      name: 'a bad namespace',
      parameters: pair('node-stage', 's', 'a.b'),
      message: '"a.b" is not a valid namespace name',
    },
    {
      name: 'a name that is bad only after expansion',
      parameters: pair('node-stage', '-${pvc.name}', 'ns'),
      message: '"-${pvc.name}" resolved to "-c1" which is not a valid secret name',
    },
    {
      name: 'the namespace is judged before the name',
      parameters: pair('node-stage', 'bad name', 'a.b'),
      message: '"a.b" is not a valid namespace name',
    },
    {
      name: '$pvc.name',
      parameters: pair('node-stage', '$pvc.name', 'ns'),
      message: 'invalid tokens: ["pvc"]',
    },
    { name: '$$', parameters: pair('node-stage', 'a$$b', 'ns'), message: 'invalid tokens: ["$"]' },
  ];
  for (const { name, parameters, message } of refused) {
    test(`${name} is refused`, async () => {
      await using rig = await Rig.start();
      putSecret(rig, 'ns', 's', {});
      const outcome = await rig.provision(makeClaim(), makeClass(parameters));
      assertFailed(outcome, 'no-change', message);
      assertNoCreate(rig);
    });
  }

  test('a deprecated name goes with a prefixed namespace', async () => {
    await using rig = await Rig.start();
    putSecret(rig, 'ns', 's', { user: base64('u') });
    const parameters = { csiProvisionerSecretName: 's', ...pair('provisioner', undefined, 'ns') };
    volumeOf(await rig.provision(makeClaim(), makeClass(parameters)));
    assert.deepEqual(rig.createRequest['secrets'], { user: 'u' });
    assert.deepEqual(rig.createRequest['parameters'], { csiProvisionerSecretName: 's' });
  });

  const reference = { name: 's', namespace: 'ns' };

  test('the default pair serves every kind', async () => {
    await using rig = await Rig.start();
    putSecret(rig, 'ns', 's', { user: base64('u') });
    const volume = volumeOf(await rig.provision(makeClaim(), makeClass(pair('', 's', 'ns'))));
    assert.deepEqual(rig.createRequest['secrets'], { user: 'u' });
    const csi = volume.spec.csi;
    assert.deepEqual(
      [
        csi?.controllerPublishSecretRef,
        csi?.nodeStageSecretRef,
        csi?.nodePublishSecretRef,
        csi?.controllerExpandSecretRef,
        csi?.nodeExpandSecretRef,
      ],
      Array.from({ length: 5 }, () => reference),
    );
    assert.deepEqual(volume.metadata.annotations, {
      [deletionName]: 's',
      [deletionNamespace]: 'ns',
      [modifyName]: 's',
      [modifyNamespace]: 'ns',
    });
    assert.equal(rig.api.requests.length, 1, 'only the provisioner secret is read');
  });

  test('a pair of its own wins over the default pair', async () => {
    await using rig = await Rig.start();
    putSecret(rig, 'ns', 's', {});
    const parameters = { ...pair('', 's', 'ns'), ...pair('node-stage', 'own', 'ns2') };
    const { csi } = volumeOf(await rig.provision(makeClaim(), makeClass(parameters))).spec;
    assert.deepEqual(csi?.nodeStageSecretRef, { name: 'own', namespace: 'ns2' });
    assert.deepEqual(csi.nodePublishSecretRef, reference);
  });

  const template = "a-${pv.name}-${pvc.namespace}-${pvc.name}-${pvc.annotations['k']}";
  const expanded = `a-pvc-${uid}-ns1-c1-v`;
  const annotated = makeClaim({}, { annotations: { ...makeClaim().metadata.annotations, k: 'v' } });

  test('a template names volume, claim and annotations', async () => {
    await using rig = await Rig.start();
    const parameters = pair('node-publish', template, 'x-${pvc.namespace}');
    const { csi } = volumeOf(await rig.provision(annotated, makeClass(parameters))).spec;
    assert.deepEqual(csi?.nodePublishSecretRef, { name: expanded, namespace: 'x-ns1' });
  });

  test('the expanded provisioner secret is read and remembered', async () => {
    await using rig = await Rig.start();
    putSecret(rig, 'ns1', expanded, { user: base64('u') });
    const parameters = pair('provisioner', template, '${pvc.namespace}');
    const volume = volumeOf(await rig.provision(annotated, makeClass(parameters)));
    assert.deepEqual(rig.createRequest['secrets'], { user: 'u' });
    assert.deepEqual(volume.metadata.annotations, { [deletionName]: expanded, [deletionNamespace]: 'ns1' });
  });

  test('empty braces vanish', async () => {
    await using rig = await Rig.start();
    const { csi } = volumeOf(await rig.provision(makeClaim(), makeClass(pair('node-stage', 'x${}y', 'ns')))).spec;
    assert.deepEqual(csi?.nodeStageSecretRef, { name: 'xy', namespace: 'ns' });
  });

  test('references of the other kinds need no secret to be there', async () => {
    await using rig = await Rig.start();
    const parameters = {
      ...pair('node-stage', 'a', 'ns'),
      ...pair('controller-expand', 'b', 'ns'),
      ...pair('node-expand', 'c', 'ns'),
    };
    const { csi } = volumeOf(await rig.provision(makeClaim(), makeClass(parameters))).spec;
    assert.equal(csi?.nodeStageSecretRef?.name, 'a');
    assert.equal(csi.controllerExpandSecretRef?.name, 'b');
    assert.equal(csi.nodeExpandSecretRef?.name, 'c');
    assert.deepEqual(rig.api.requests, []);
  });

  test('a modify pair leaves two annotations and no other trace', async () => {
    await using rig = await Rig.start();
    const plain = volumeOf(await rig.provision());
    const volume = volumeOf(await rig.provision(makeClaim(), makeClass(pair('controller-modify', 'm', 'ns'))));
    assert.deepEqual(volume.metadata.annotations, {
      ...plain.metadata.annotations,
      [modifyName]: 'm',
      [modifyNamespace]: 'ns',
    });
    assert.deepEqual(volume.spec, plain.spec);
  });

  test('a value that the driver quotes in its error is taken out, the code and the rest stay', async () => {
    await using rig = await Rig.start();
    putSecret(rig, 'ns', 's', { password: Buffer.from('hunter2hunter2').toString('base64') });
    const text = 'login of admin with hunter2hunter2 was refused';
    rig.driver.next('CreateVolume', new DriverFailure(status.UNAUTHENTICATED, text));
    const outcome = await rig.provision(makeClaim(), makeClass(pair('provisioner', 's', 'ns')));
    const { error } = outcome as { error: Error };
    assert.match(error.message, /code = Unauthenticated desc = login of admin with \*\*\*stripped\*\*\* was refused/);
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      assert.ok(!`${at.message}${at.stack ?? ''}${JSON.stringify(at)}`.includes('hunter2'));
    }
  });

  test('a value that is not UTF-8 never leaves the process', async () => {
    await using rig = await Rig.start();
    putSecret(rig, 'ns', 's', { user: Buffer.from([0xff, 0xfe]).toString('base64') });
    const outcome = await rig.provision(makeClaim(), makeClass(pair('provisioner', 's', 'ns')));
    assertFailed(outcome, 'no-change', 'rpc error: code = Internal desc = grpc: error while marshaling');
    assertNoCreate(rig);
  });
});
