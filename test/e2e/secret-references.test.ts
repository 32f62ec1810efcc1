/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolume } from '@kubernetes/client-node';
import { connectDriver } from '../support/driver-client.ts';
import { plainJson } from './plain-json.ts';
import { openScene, type Scene } from '../support/scene.ts';

const prefix = 'csi.storage.k8s.io/';
const deletionKeys = ['name', 'namespace'].map((half) => `volume.kubernetes.io/provisioner-deletion-secret-${half}`);

let scene: Scene;

const createSecret = (name: string, key = 'password') =>
  scene.admin.core.createNamespacedSecret({
    namespace: scene.namespace,
    body: { metadata: { name }, stringData: { [key]: 'hunter2' } },
  });

describe('a class that names secrets of every kind', () => {
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('has its templates resolved on the volume; only the provisioner secret is read', async () => {
    const templates = {
      provisioner: '${pvc.name}-provisioner',
      'controller-publish': '${pv.name}',
      'node-stage': '${pvc.namespace}-${pvc.name}',
      'node-publish': "${pvc.annotations['team.example.com/name']}-publish",
      'controller-expand': 'fixed',
      'controller-modify': '$pv.name',
    };
    // In a template without braces the token ends before the dot, so that one is refused.
    const { 'controller-modify': _refused, ...valid } = templates;
    const pairs = (entries: Record<string, string>) =>
      Object.fromEntries(
        Object.entries(entries).flatMap(([kind, name]) => [
          [`${prefix}${kind}-secret-name`, name],
          [`${prefix}${kind}-secret-namespace`, '${pvc.namespace}'],
        ]),
      );
    const annotations = { 'team.example.com/name': 'blue' };
    const refusing = await scene.createClass({ parameters: pairs(templates) });
    await createSecret('refused-provisioner');
    const refused = await scene.createClaim({ name: 'refused', className: refusing, annotations });
    const { message = '' } = await scene.event(refused, 'ProvisioningFailed');
    assert.ok(message.includes('error resolving value "$pv.name": invalid tokens: ["pv"]'), message);
    await scene.deleteClaim('refused');
    assert.deepEqual(await scene.driver.calls('CreateVolume'), []);

    await createSecret('mine-provisioner');
    const className = await scene.createClass({
      parameters: {
        ...pairs({ ...valid, 'controller-modify': '${pv.name}-modify' }),
        [`${prefix}secret-name`]: 'default-${pvc.name}',
        [`${prefix}secret-namespace`]: 'kube-system',
      },
    });
    await scene.createClaim({ name: 'mine', className, annotations });
    const { volume } = await scene.bound('mine');
    const pvName = volume.metadata?.name ?? '';
    const { namespace } = scene;
    const csi = plainJson(volume.spec?.csi);
    assert.deepEqual(Object.fromEntries(Object.entries(csi).filter(([field]) => field.endsWith('SecretRef'))), {
      controllerPublishSecretRef: { name: pvName, namespace },
      nodeStageSecretRef: { name: `${namespace}-mine`, namespace },
      nodePublishSecretRef: { name: 'blue-publish', namespace },
      controllerExpandSecretRef: { name: 'fixed', namespace },
      nodeExpandSecretRef: { name: 'default-mine', namespace: 'kube-system' },
    });
    assert.deepEqual(volume.metadata?.annotations, {
      'pv.kubernetes.io/provisioned-by': scene.driver.driverName,
      'volume.kubernetes.io/provisioner-deletion-secret-name': 'mine-provisioner',
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': namespace,
      'volume.kubernetes.io/controller-modify-secret-name': `${pvName}-modify`,
      'volume.kubernetes.io/controller-modify-secret-namespace': namespace,
    });
    const [call] = await scene.driver.calls('CreateVolume');
    assert.deepEqual(call?.request.secrets, ['password']);
    assert.equal(call.request.parameters, undefined);
  });
});

describe('the deletion of a volume', () => {
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const secretOf = (name: string) => ({
    [`${prefix}provisioner-secret-name`]: name,
    [`${prefix}provisioner-secret-namespace`]: '${pvc.namespace}',
  });

  /** A volume that an administrator made by hand, with a claim that is bound to it. */
  const staticVolume = async (
    name: string,
    { className, ...rest }: { className: string; annotations?: Record<string, string>; insists?: boolean },
  ): Promise<V1PersistentVolume> => {
    using driver = connectDriver(scene.driver.address);
    const parameters: Record<string, string> = rest.insists === true ? { requireSecretOnDelete: 'password' } : {};
    const volumeHandle = await driver.createVolume(name, parameters);
    const provisionedBy = { 'pv.kubernetes.io/provisioned-by': scene.driver.driverName };
    const volumeName = `${scene.namespace}-${name}`;
    await scene.admin.core.createPersistentVolume({
      body: {
        metadata: { name: volumeName, annotations: { ...provisionedBy, ...rest.annotations } },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          storageClassName: className,
          persistentVolumeReclaimPolicy: 'Delete',
          claimRef: { namespace: scene.namespace, name },
          csi: { driver: scene.driver.driverName, volumeHandle },
        },
      },
    });
    await scene.createClaim({ name, className, spec: { volumeName } });
    return (await scene.bound(name)).volume;
  };
  const annotated = (name: string, namespace = scene.namespace) => ({
    [deletionKeys[0] ?? '']: name,
    [deletionKeys[1] ?? '']: namespace,
  });
  /** Deletes the claim, waits for its volume to follow, and gives the keys of the secrets that the driver got. */
  const secretsAtDeletion = async (claimName: string, volume: V1PersistentVolume): Promise<string[]> => {
    await scene.deleteClaim(claimName);
    await scene.volumeGone(volume.metadata?.name ?? '');
    const handle = volume.spec?.csi?.volumeHandle;
    const calls = (await scene.driver.calls('DeleteVolume')).filter(({ request }) => request.volume_id === handle);
    assert.deepEqual(
      calls.map(({ code }) => code),
      ['OK'],
    );
    return calls[0]?.request.secrets ?? [];
  };

  test('uses the secret that the volume remembers, also when its class is gone', async () => {
    await createSecret('remembered', 'from-volume');
    const name = `${scene.namespace}-short-lived`;
    const body = { metadata: { name }, provisioner: scene.driver.driverName, parameters: secretOf('remembered') };
    await scene.admin.storage.createStorageClass({ body });
    await scene.createClaim({ name: 'orphan', className: name });
    const { volume } = await scene.bound('orphan');
    await scene.admin.storage.deleteStorageClass({ name });
    assert.deepEqual(await secretsAtDeletion('orphan', volume), ['from-volume']);
  });

  test('prefers what the volume says over what its class says', async () => {
    await createSecret('class-secret', 'from-class');
    await createSecret('volume-secret', 'from-annotation');
    const className = await scene.createClass({ parameters: secretOf('class-secret') });
    const volume = await staticVolume('preferring', { className, annotations: annotated('volume-secret') });
    assert.deepEqual(await secretsAtDeletion('preferring', volume), ['from-annotation']);
  });

  test('asks the class, with its templates, when the volume has not both annotations', async () => {
    await createSecret('by-hand-secret', 'from-class');
    await createSecret('half-secret', 'from-class');
    const className = await scene.createClass({ parameters: secretOf('${pvc.name}-secret') });
    const plain = await staticVolume('by-hand', { className });
    assert.deepEqual(await secretsAtDeletion('by-hand', plain), ['from-class']);
    const half = await staticVolume('half', { className, annotations: { [deletionKeys[0] ?? '']: 'none' } });
    assert.deepEqual(await secretsAtDeletion('half', half), ['from-class']);
  });

  test('sends none when the annotations are empty, whatever the class says', async () => {
    await createSecret('unwanted', 'from-class');
    const className = await scene.createClass({ parameters: secretOf('unwanted') });
    const volume = await staticVolume('without', { className, annotations: annotated('', '') });
    assert.deepEqual(await secretsAtDeletion('without', volume), []);
  });

  test('fails while the class names a secret by what only its claim had', async () => {
    const name = `${scene.namespace}-by-annotation`;
    const parameters = secretOf("${pvc.annotations['team']}-secret");
    await scene.admin.storage.createStorageClass({
      body: { metadata: { name }, provisioner: scene.driver.driverName, parameters },
    });
    const volume = await staticVolume('unresolved', { className: name });
    await scene.deleteClaim('unresolved');
    await scene.eventually(async () => {
      const failed = (await scene.volumeEvents(volume)).find(({ reason }) => reason === 'VolumeFailedDelete');
      const text = `failed to get secretreference for volume ${volume.metadata?.name ?? ''}: error resolving value`;
      assert.ok(failed?.message?.includes(text), failed?.message);
    });
    await scene.admin.storage.deleteStorageClass({ name }); // without a class there is no secret to look for
    await scene.volumeGone(volume.metadata?.name ?? '');
  });

  test('goes on without a secret that is missing, and leaves it to the driver to refuse', async () => {
    const className = await scene.createClass();
    const careless = await staticVolume('careless', { className, annotations: annotated('lost') });
    assert.deepEqual(await secretsAtDeletion('careless', careless), []);

    const strict = await staticVolume('strict', { className, annotations: annotated('delayed'), insists: true });
    await scene.deleteClaim('strict');
    await scene.eventually(async () => {
      const failed = (await scene.volumeEvents(strict)).find(({ reason }) => reason === 'VolumeFailedDelete');
      assert.match(failed?.message ?? '', /code = InvalidArgument desc = secrets must have the key password/);
    });
    const name = strict.metadata?.name ?? '';
    assert.equal((await scene.admin.core.readPersistentVolume({ name })).status?.phase, 'Released');
    await createSecret('delayed');
    await scene.volumeGone(name);
    const handle = strict.spec?.csi?.volumeHandle;
    const calls = (await scene.driver.calls('DeleteVolume')).filter(({ request }) => request.volume_id === handle);
    assert.deepEqual(
      [calls.at(-1)?.code, calls.at(-1)?.request.secrets, calls[0]?.code, calls[0]?.request.secrets ?? []],
      ['OK', ['password'], 'INVALID_ARGUMENT', []],
    );
  });
});
